# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The C++ examples of docs/advice.md on the simulated driver, judged as on a GPU."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import advice_pairs  # noqa: E402: the folder is known only now
from harness import Ran  # noqa: E402

TOOL, PROGRAM, SIM = (os.environ[name] for name in ("HOSTWAIT_TOOL", "ADVICE_SIM", "HOSTWAIT_SIM"))


class Checks:
    """The part of the harness's session that the judgement uses."""

    def __init__(self):
        self.failed, self.passed = [], []

    def check(self, name, good, detail=""):
        (self.passed if good else self.failed).append(f"{name}: {detail}")
        return good


class Advice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        env = dict(os.environ, LD_LIBRARY_PATH=SIM, ADVICE_WORK_MIB="4", ADVICE_WORK_PIECES="4",
                   HOSTWAIT_SIM_COPY_SPEED="140000000")  # 30 ms a piece
        env.pop("HOSTWAIT_OPTIONS", None)
        with tempfile.TemporaryDirectory() as folder:
            # Half a piece: a loaded machine must not make a wait of what stands after.
            done = subprocess.run(
                [TOOL, "run", "-q", "--output", folder, "--arm", "queue_full,poll", "--threshold-us",
                 "15000", "--own-cost", "15000,1", "--", PROGRAM], env=env, capture_output=True,
                text=True, timeout=240, check=False)
            made = subprocess.run([TOOL, "report", "--format", "json", folder], env=env,
                                  capture_output=True, text=True, timeout=120, check=True)
        cls.ran = Ran(done.returncode, done.stdout, done.stderr, 0.0, json.loads(made.stdout))

    def test_before_has_its_finding_and_after_none(self):
        self.assertEqual(self.ran.status, 0, self.ran.err)
        checks = Checks()
        made = advice_pairs.judge(checks, "sim", self.ran)
        self.assertEqual(len(made), 13, self.ran.out)
        self.assertEqual(checks.failed, [])
        self.assertEqual(len(checks.passed), 2 * len(made))

    def test_the_judgement_can_fail(self):
        swapped = json.loads(json.dumps(self.ran.report).replace(" before", " AFTER")
                             .replace(" after", " before").replace(" AFTER", " after"))
        checks = Checks()
        advice_pairs.judge(checks, "sim", Ran(0, self.ran.out, "", 0.0, swapped))
        self.assertEqual(len(checks.failed), 26)


if __name__ == "__main__":
    unittest.main()
