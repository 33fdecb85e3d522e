# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""gpu_scripts.lines: the judgement of named lines, on made-up findings and, with HOSTWAIT_TOOL and
HOSTWAIT_LINES, on the C++ program of the proof, built for the simulated driver."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import expected_lines  # noqa: E402: the folder is known only now

SOURCE = """def outer():
    def inner():
        wait()  # expect: copy; range step
    inner()  # setup
class Named:
    def method(self):
        return [wait() for _ in range(2)]  # expect: stream_sync|copy; in Named.method; id m
"""


def finding(line, function, kind="copy", **more):
    return {"python": [{"file": "/a/site-packages/b.py", "line": 1, "function": "f", "library": True},
                       {"file": "/x/source.py", "line": line, "function": function,
                        "library": False}],
            "native": [], "kind": kind, "call": "cuMemcpyDtoH_v2", "range": "step", "label": "",
            "thread_names": ["python3"], "where": f"source.py:{line} {function}", **more}


KINDS = expected_lines.WAITS | {"free", "host_free"}
GOOD = [finding(3, "outer.<locals>.inner"), finding(7, "Named.method", "stream_sync"),
        finding(4, "outer", "device_sync"), finding(1, "<module>", "module")]


class Judge(unittest.TestCase):
    def failures(self, findings):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "source.py")
            source.write_text(SOURCE)
            return [name for name, good, _ in expected_lines.judge(source, findings) if not good]

    def test_what_is_right_passes(self):
        self.assertEqual(self.failures(GOOD), [])

    def test_a_missing_finding_fails(self):
        self.assertEqual(self.failures(GOOD[1:]), ["source.py:3"])

    def test_a_neighbouring_line_fails_twice(self):
        self.assertEqual(self.failures([finding(2, "outer.<locals>.inner"), *GOOD[1:]]),
                         ["source.py:3", "source.py: no other line"])

    def test_kind_function_range_and_text_are_compared(self):
        for wrong in (finding(3, "outer.<locals>.inner", "event_sync"), finding(3, "outer"),
                      finding(3, "outer.<locals>.inner", range=""),
                      finding(3, "outer.<locals>.inner", where="source.py:33 inner")):
            self.assertEqual(self.failures([wrong, *GOOD[1:]]), ["source.py:3"])

    def test_a_source_without_expectations_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "source.py")
            source.write_text("wait()\n")
            self.assertFalse(all(good for _, good, _ in expected_lines.judge(source, [])))


class Sources(unittest.TestCase):
    def test_every_source_says_what_is_expected(self):
        sources = [*HERE.glob("workloads/lines_*.py"), *HERE.glob("workloads/nvtx_*.py"),
                   HERE / "lines" / "lines.cpp", HERE / "nvtx" / "ranges.cpp"]
        self.assertEqual(len(sources), 7)
        for path in sources:
            source = expected_lines.Source(path)
            self.assertGreater(len(source.expected), 2, path)
            for expectation in source.expected:
                self.assertLessEqual(set(expectation.kinds), KINDS, f"{path}:{expectation.line}")
                self.assertLessEqual(set(expectation.keys), {"in", "range", "label", "thread", "id"})
                self.assertTrue(expectation.function or path.suffix == ".cpp", path)


class Program(unittest.TestCase):
    def test_inlined_functions_on_the_simulated_driver(self):
        tool, program = os.environ.get("HOSTWAIT_TOOL"), os.environ.get("HOSTWAIT_LINES")
        if not tool or not program:
            self.skipTest("HOSTWAIT_TOOL and HOSTWAIT_LINES are not set")
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run([tool, "run", "--output", folder, "--", program], text=True,
                                 capture_output=True, timeout=120, check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            report = json.loads(subprocess.run(
                [tool, "report", "--format", "json", folder], capture_output=True, text=True,
                timeout=120, check=True).stdout)
        results = expected_lines.judge(HERE / "lines" / "lines.cpp", report["findings"])
        self.assertEqual([r for r in results if not r[1]], [], ran.stderr)
        self.assertGreater(len(results), 10)


if __name__ == "__main__":
    unittest.main()
