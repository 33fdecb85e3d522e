# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The judgement of the cases on made-up findings: what is missing, wrong or too much must not pass;
and every case file is read."""

import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import judge  # noqa: E402: the folder is known only now

FILE = """// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// ZZ-01, false_positive, nobody: https://example.org
// Text.
//
// expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "calls": 2,
//               "waited": [1, 2], "at": "free"}
// expect control: nothing
void f() {
  cuMemFree(p);  // here free
}
"""
LINE = 10


def finding(**changes):
    made = {"kind": "free", "call": "cuMemFree_v2", "runtime_call": "cuMemFree", "verdict": "context",
            "reason": "", "calls": 2, "waited": 1, "latent": 1, "refused": 0, "held": 0,
            "violations": 0, "ns": {"max": 20_000_000}, "python": [], "label": "ZZ-01 case",
            "native": [{"function": "f", "file": "/somewhere/ZZ-01_x.cpp", "line": LINE}],
            "thread_names": ["main"], "lines": [LINE], "where": "ZZ-01_x.cpp:10 f"}
    return {**made, **changes}


class Judge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.case = self.read(FILE)

    def read(self, text, name="ZZ-01_x.cpp"):
        path = pathlib.Path(self.folder.name, name)
        path.write_text(text, encoding="utf-8")
        return judge.read(path)

    def judged(self, *findings, part="case", case=None):
        return judge.judge(case or self.case, part, findings)

    def test_as_expected(self):
        self.assertEqual(self.judged(finding()), [])
        self.assertEqual(self.judged(part="control"), [])

    def test_a_missing_finding(self):
        self.assertEqual(len(self.judged()), 1)
        self.assertEqual(len(self.judged(finding(label="ZZ-01 warm-up"))), 1)

    def test_each_difference(self):
        for changes in ({"verdict": "stream"}, {"calls": 3}, {"waited": 0}, {"waited": 3},
                        {"lines": [11]}):
            self.assertEqual(len(self.judged(finding(**changes))), 1, changes)
        elsewhere = [{"function": "f", "file": "/somewhere/ZZ-01_x.cpp", "line": 9}]
        self.assertEqual(len(self.judged(finding(native=elsewhere))), 2)  # missing and unexpected

    def test_without_time(self):
        def judged(**changes):
            return judge.judge(self.case, "case", [finding(**changes)], timed=False)
        self.assertEqual(judged(waited=0, latent=2), [])
        self.assertEqual(len(judged(calls=3)), 1)
        self.assertEqual(len(judged(verdict="stream")), 1)

    def test_bounds_of_time(self):
        case = self.read(FILE.replace('"at"', '"above_ms": 5, "below_ms": 50, "at"'))
        for longest, wrong in ((4, 1), (20, 0), (60, 1)):
            made = self.judged(finding(ns={"max": longest * 1_000_000}), case=case)
            self.assertEqual(len(made), wrong, longest)

    def test_a_control_that_speaks(self):
        self.assertEqual(len(self.judged(finding(label="ZZ-01 control"), part="control")), 1)

    def test_noise_is_short_and_no_wait(self):
        short = {"label": "ZZ-01 control", "verdict": "none", "held": 1}
        self.assertEqual(self.judged(finding(**short, ns={"max": 200_000}), part="control"), [])
        self.assertEqual(len(self.judged(finding(**short), part="control")), 1)
        module = finding(label="ZZ-01 control", kind="module")
        self.assertEqual(self.judged(module, part="control"), [])

    def test_sites_are_added_in_python(self):
        text = FILE.replace("// here", "# here").replace("//", "#").replace("cuMemFree(p);", "free()")
        case = self.read(text, "ZZ-01_x.py")
        frame = [{"function": "f", "file": "/somewhere/ZZ-01_x.py", "line": LINE}]
        one = finding(python=frame, native=[], calls=1)
        self.assertEqual(self.judged(one, one, case=case), [])
        self.assertEqual(len(self.judged(one, case=case)), 1)

    def test_captures(self):
        case = self.read(FILE.replace("// expect case", '// expect captures: {"call": "cuMemFree", '
                                      '"at": "free", "begun_at": "free", "thread": "other", '
                                      '"times": 1}\n// expect case', 1))
        side = {"call": "cuMemFree_v2", "thread": "other", "tid": 2, "python": [], "where": "",
                "native": [{"function": "f", "file": "ZZ-01_x.cpp", "line": LINE + 1}]}
        capture = {"begin": {**side, "thread": "main", "tid": 1}, "broken_by": side, "mode": "global",
                   "count": 1, "possible": False, "refused": False, "result": 900}
        self.assertEqual(judge.judge_captures(case, [capture]), [])
        self.assertEqual(len(judge.judge_captures(case, [])), 1)
        strange = {**capture, "broken_by": {**side, "thread": "main"}}
        self.assertEqual(len(judge.judge_captures(case, [capture, strange])), 1)
        elsewhere = {**side, "native": [{"function": "f", "file": "ZZ-01_x.cpp", "line": 1}]}
        self.assertEqual(len(judge.judge_captures(case, [{**capture, "broken_by": elsewhere}])), 2)
        self.assertEqual(len(judge.judge_captures(case, [{**capture, "begin": elsewhere}])), 2)
        for changes in ({"count": 2}, {"possible": True}, {"refused": True}, {"result": 901},
                        {"begin": {**side, "tid": 2}}, {"begin": {**side, "tid": 0}}):
            self.assertEqual(len(judge.judge_captures(case, [{**capture, **changes}])), 1, changes)
        plain = self.read(FILE)
        self.assertEqual(len(judge.judge_captures(plain, [capture])), 1)

    def test_who_held_a_call_up(self):
        text = FILE.replace('"at": "free"', '"at": "free", "held_by": {"call": "cuModuleLoadData", '
                            '"thread": "loader"}')
        case = self.read(text)
        by = {"call": "cuModuleLoadData", "thread": "loader"}
        self.assertEqual(self.judged(finding(held_by=[by]), case=case), [])
        for held_by in ([], [{**by, "thread": "main"}], [{**by, "call": "cuMemFree_v2"}]):
            self.assertEqual(len(self.judged(finding(held_by=held_by), case=case)), 1, held_by)

    def test_heads_that_are_not_understood(self):
        for bad in (FILE.replace("expect control: nothing", ""), FILE.replace('"free"}', '"gone"}'),
                    FILE.replace('"calls"', '"callz"'), FILE.replace("ZZ-01,", "ZZ-02,"),
                    FILE.replace('"free"}', '"free"')):
            with self.assertRaises(ValueError):
                self.read(bad)


class Files(unittest.TestCase):
    def test_every_case_is_listed_and_runs_something(self):
        listed = (HERE / "README.md").read_text(encoding="utf-8")
        cases = [case for suffix in (".cpp", ".cu", ".py") for case in judge.all_cases(suffix)]
        self.assertEqual(len({case.id for case in cases}), len(cases))
        for case in cases:
            self.assertTrue(re.search(rf"^\| {case.id} \| {case.kind} \| \[", listed, re.M), case.id)
            text = case.path.read_text(encoding="utf-8")
            if case.path.suffix == ".py":
                self.assertIn("\ndef case():", text, case.path)
                self.assertIn("\ndef control():", text, case.path)
            else:
                self.assertRegex(text, rf'HOSTWAIT_(COLD_)?CASE\("{case.id}", ', case.path)


if __name__ == "__main__":
    unittest.main()
