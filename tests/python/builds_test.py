# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python.builds: interpreters that are not installed, played by fake_interpreter.cpp; and the
offsets that an installed 3.13 publishes against the table of python_layout.hpp."""

import os
import subprocess
import sys
import tempfile
import unittest

from interpreters import interpreters, stacks_by_label, under_hostwait

FAKE = os.environ["HOSTWAIT_FAKE_INTERPRETER"]
OFFSETS = os.environ["HOSTWAIT_PYTHON_OFFSETS"]
ASK = """
import ctypes, sys
ours = ctypes.CDLL(sys.argv[1])
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
sys.exit(ours.hostwait_test_offsets_agree(ctypes.c_void_p(runtime)))
"""


class Builds(unittest.TestCase):
    def seen(self, mode):
        """(Python stack, notes that speak of CPython, native frames are there) of one wait."""
        with tempfile.TemporaryDirectory() as folder:
            _, report = under_hostwait([FAKE, mode], folder)
        finding = next(f for f in report["findings"] if f["label"] == "made up")
        return (stacks_by_label(report)["made up"],
                [note for note in report["notes"] if "CPython" in note], bool(finding["native"]))

    def test_314_by_its_published_offsets(self):
        stack, notes, native = self.seen("3.14")
        self.assertEqual(stack, [["/x/made_up.py", "Größe.länge→", 14],
                                 ["/x/made_up.py", "outer", 106]])
        self.assertEqual(notes, ["CPython 3.14 is read by the offsets that it publishes, which is "
                                 "untested"])
        self.assertTrue(native)

    def test_builds_that_get_native_stacks_and_one_note(self):
        for mode, words in (("3.14t", "CPython 3.14 without the GIL"),
                            ("3.13t", "CPython 3.13 without the GIL"),
                            ("3.15", "CPython 3.15 is not known"),
                            ("3.10", "CPython 3.10 is not known"),
                            ("shifted", "CPython 3.14 is not known"),
                            ("longer heads", "not laid out as in its release builds")):
            with self.subTest(mode):
                stack, notes, native = self.seen(mode)
                self.assertEqual(stack, [])
                self.assertEqual(len(notes), 1)
                self.assertIn(words, notes[0])
                self.assertIn("native stacks only", notes[0])
                self.assertTrue(native)

    def test_an_interpreter_that_has_not_started(self):
        self.assertEqual(self.seen("not started")[0], [])

    def test_published_offsets_of_313_are_those_of_the_table(self):
        found = [python for python in interpreters() if python.minor == 13]
        if not found:
            self.skipTest("no CPython 3.13 here")
        for python in found:
            asked = subprocess.run([python.path, "-c", ASK, OFFSETS], capture_output=True,
                                   text=True, check=False)
            self.assertEqual(asked.returncode, 0, asked.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
