# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the tests of the command line share: the tool in a fresh folder, its output as text."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = os.environ["HOSTWAIT_TOOL"]
STUB = os.environ["HOSTWAIT_LIBDIR"]
MAKE_RECORDS = os.environ["HOSTWAIT_MAKE_RECORDS"]
SCHEMAS = os.environ["HOSTWAIT_SCHEMAS"]


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="hostwait-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("LD_PRELOAD", "HOSTWAIT_OPTIONS", "HOSTWAIT_RUN_ID", "COLUMNS")
        }

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def hostwait(self, *words, **more):
        more.setdefault("cwd", self.folder)
        more.setdefault("env", self.environment)
        return subprocess.run(
            [TOOL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **more
        )

    def refused(self, status, *words, **more):
        """The one line with which the tool refuses; the program must not have run."""
        result = self.hostwait(*words, **more)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("hostwait: "), result.stderr)
        return result.stderr

    def records(self, folder=None):
        return sorted(name for name in os.listdir(folder or self.folder) if name.endswith(".hwr"))


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    """The end of a test file: status 77 where nothing failed and nothing but skipped tests was met. The
    reasons stand in the output."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    result = unittest.main(testRunner=runner, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.passed == 0:
        sys.exit(77 if result.skipped else "no test ran")
