# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The driver-API cases on the simulated driver (LD_LIBRARY_PATH), judged as on a GPU but for what
rests on the length of calls.
HOSTWAIT_CASES: the folder of cases_driver."""

import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import cases_proof  # noqa: E402: the folder is known only now
from harness import Session  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder:
        session = Session(pathlib.Path(folder, "out"), pathlib.Path(folder, "build"))
        shutil.copy2(pathlib.Path(os.environ["HOSTWAIT_CASES"], "cases_driver"), session.build)
        cases_proof.run_programs(session, on_sim=True)
        if session.failed or session.passed < 60:
            print(pathlib.Path(folder, "out", "gpu.log").read_text(encoding="utf-8")[-8000:])
        print(f"{session.passed} passed, {session.failed} failed, {session.skipped} skipped")
        return 1 if session.failed or session.passed < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
