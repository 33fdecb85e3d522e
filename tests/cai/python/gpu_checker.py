# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The producer checker on a GPU: its slow-kernel test finds what samples.py does wrong, and nothing
else.
"""

import os
import pathlib
import subprocess
import sys

import proof

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = {
    "good": (0, None),
    "wrong_stream": (1, "violation R16 stream"),
    "no_stream": (1, "violation R17 stream"),
    "ready": (0, None),
    "version_2": (0, "note R25 version: work was pending"),
}


def check(out, sample, status, line):
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent.parent.parent / 'python'}:{HERE}"}
    ran = subprocess.run(
        [sys.executable, "-m", "hostwait.cai", "check", f"samples:{sample}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    good = (
        ran.returncode == status
        and (line is None or line in ran.stdout)
        and ("slow-kernel test" in ran.stdout)
    )
    out.result(
        f"checker.{sample}",
        good,
        status=ran.returncode,
        **({} if good else {"stdout": ran.stdout[-600:], "stderr": ran.stderr[-600:]}),
    )


def run(out, _):
    for sample, (status, line) in EXPECTED.items():
        out.attempt(f"checker.{sample}", check, out, sample, status, line)


if __name__ == "__main__":
    proof.script(run)
