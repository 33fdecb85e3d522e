# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python.stress: no wait of many threads is lost and the record stays small, for every interpreter
at hand. HOSTWAIT_STRESS_PYTHON_WAITS makes it longer. Status 77 where there is none."""

import os
import pathlib
import sys
import tempfile

from interpreters import HERE, interpreters, under_hostwait

WAITS = int(os.environ.get("HOSTWAIT_STRESS_PYTHON_WAITS", "8000"))
BYTES = 4 << 20


def check(python):
    with tempfile.TemporaryDirectory() as folder:
        output, report = under_hostwait([python.path, "-B", HERE / "stress_program.py", WAITS],
                                        folder)
        size = sum(path.stat().st_size for path in pathlib.Path(folder).glob("*.hwr"))
    counted = sum(f["calls"] for f in report["findings"]
                  if f["call"].startswith(("cuStreamSynchronize", "(other)")))
    stacks = {str(f["python"]) for f in report["findings"]}
    # Below a name of their own the frames are those of the program, whatever thread they were on.
    odd = [f["where"] for f in report["findings"]
           if f["call"] != "(other)" and not (f["python"] and f["python"][0]["function"] == "deep")]
    good = (int(output) == counted == WAITS and size <= BYTES and len(stacks) > 80
            and not odd and not report["coverage"]["full"])
    print(f"{python.name}: {counted} of {WAITS} waits, {len(stacks)} stacks, {size >> 10} KiB"
          f"{f'; frames missing: {odd[:3]}' if odd else ''}")
    return good


def main():
    found = interpreters()
    if not found:
        return 77
    return 0 if all([check(python) for python in found]) else 1


sys.exit(main())
