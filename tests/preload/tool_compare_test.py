# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""suppress and diff on records made for the test; run --after and --duration."""

import copy
import json
import os
import re
import shutil
import struct
import subprocess
import time

import tool_support
from tool_support import MAKE_RECORDS, SCHEMAS

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None
try:
    import jsonschema
except ImportError:
    jsonschema = None


START_REAL_NS = 72  # its place in the header of record.h


class Compared(tool_support.Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("records"))
        subprocess.run([MAKE_RECORDS, "as-shim", "folder", self.path("records")], check=True, env=self.environment)
        (name,) = self.records(self.path("records"))
        self.record = self.path("records", name)
        result = self.hostwait("report", "--format", "json", self.record)
        self.report = json.loads(result.stdout)
        self.assertEqual(len(self.report["findings"]), 2)

    def write(self, name, report):
        with open(self.path(name), "w") as file:
            json.dump(report, file)
        return self.path(name)


class Suppress(Compared):
    def rule(self, *words):
        result = self.hostwait("suppress", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("# "), result.stdout)
        if tomllib is None:
            self.skipTest("no tomllib before Python 3.11")
        (rule,) = tomllib.loads(result.stdout)["allow"]
        return rule, result.stdout

    def test_the_copy_and_the_wait_behind_it(self):
        copied = self.report["findings"][0]
        self.assertEqual(copied["kind"], "async_copy")
        rule, text = self.rule(copied["fingerprint"], self.record, "--reason", 'loss is "logged"')
        self.assertEqual(
            rule,
            {"reason": 'loss is "logged"', "kind": ["async_copy", "stream_sync"], "python": "me/train.py:step"},
        )
        self.assertIn("[[allow]]", text)
        self.assertIn(copied["fingerprint"], text)

    def test_by_row_and_by_fingerprint_are_the_same(self):
        for row, finding in enumerate(self.report["findings"], 1):
            self.assertEqual(self.rule(str(row), self.record), self.rule(finding["fingerprint"], self.record))
        rule, _ = self.rule("2", self.record)
        self.assertEqual((rule["kind"], rule["python"]), (["free"], "me/train.py:main"))
        self.assertIn("reason", rule)

    def test_the_newest_run_is_the_default(self):
        newest = os.path.join(self.folder, os.path.basename(self.record))
        shutil.copy(self.record, newest)
        with open(newest, "r+b") as file:
            file.seek(START_REAL_NS)
            file.write(struct.pack("<Q", 1 << 62))
        fingerprint = self.report["findings"][0]["fingerprint"]
        self.assertEqual(self.rule(fingerprint), self.rule(fingerprint, self.record))

    def test_what_is_no_finding(self):
        for which in ("0", "3", "x", "0123456789abcdef", "12345678"):
            self.assertIn("suppress: ", self.refused(2, "suppress", which, self.record))
        self.refused(2, "suppress")
        self.assertIn("No such file", self.refused(2, "suppress", "1", self.path("none")))


class Diff(Compared):
    def changes(self, before, after, *words):
        result = self.hostwait("diff", "--format", "json", before, after, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        value = json.loads(result.stdout)
        with open(os.path.join(SCHEMAS, "diff.schema.json")) as file:
            schema = json.load(file)
        if jsonschema is not None:
            jsonschema.validate(value, schema)
        for name in schema["required"]:
            self.assertIn(name, value)
        return value

    def test_a_run_against_itself(self):
        for before, after in ((self.record, self.record), (self.path("records"), self.write("a.json", self.report))):
            value = self.changes(before, after)
            self.assertEqual((value["new"], value["gone"], value["grown"], value["unchanged"]), ([], [], [], 2))
        result = self.hostwait("diff", self.record, self.record)
        self.assertEqual(result.stdout, "hostwait: 0 new, 0 gone, 0 grown, 2 as before\n")

    def test_new_gone_and_grown(self):
        after = copy.deepcopy(self.report)
        gone = after["findings"].pop(1)
        after["findings"][0]["calls"] += 1
        fresh = copy.deepcopy(gone)
        fresh["fingerprint"] = "0123456789abcdef"
        after["findings"].append(fresh)
        value = self.changes(self.record, self.write("b.json", after))
        self.assertEqual([each["fingerprint"] for each in value["new"]], ["0123456789abcdef"])
        self.assertEqual([each["fingerprint"] for each in value["gone"]], [gone["fingerprint"]])
        (grown,) = value["grown"]
        self.assertEqual(grown["fingerprint"], self.report["findings"][0]["fingerprint"])
        self.assertEqual(grown["after"]["calls"], grown["before"]["calls"] + 1)
        self.assertIsNone(value["new"][0]["before"])
        self.assertIsNone(value["gone"][0]["after"])
        self.assertEqual(value["unchanged"], 0)
        lines = self.hostwait("diff", self.record, self.path("b.json")).stdout.splitlines()
        self.assertEqual(lines[0], "hostwait: 1 new, 1 gone, 1 grown, 0 as before")
        self.assertEqual([line.split()[0] for line in lines[1:]], ["new", "grown", "gone"])
        self.assertIn("calls 100 -> 101", lines[2])

    def test_tolerance_and_lines(self):
        after = copy.deepcopy(self.report)
        after["findings"][0]["calls"] = self.report["findings"][0]["calls"] * 11 // 10
        path = self.write("b.json", after)
        self.assertEqual(len(self.changes(self.record, path)["grown"]), 1)
        self.assertEqual(len(self.changes(self.record, path, "--tolerance", "10")["grown"]), 0)
        after = copy.deepcopy(self.report)
        after["findings"][0]["lines"].append(4711)
        self.assertEqual(len(self.changes(self.record, self.write("c.json", after))["grown"]), 1)

    def test_more_time_alone_is_not_growth(self):
        after = copy.deepcopy(self.report)
        after["findings"][0]["ns"]["total"] *= 10
        self.assertEqual(self.changes(self.record, self.write("b.json", after))["unchanged"], 2)

    def test_unreadable_input(self):
        cut = self.write("cut.json", {**self.report, "findings": self.report["findings"][:1]})
        cases = {
            self.write("other.json", {"schema": "hostwait.baseline/1", "findings": []}): "is no hostwait.report/1",
            self.write("empty.json", {}): "is no report",
            cut: "holds only the first findings",
            self.path("none"): "No such file",
        }
        with open(self.path("broken.json"), "w") as file:
            file.write('{"schema": ')
        cases[self.path("broken.json")] = "is no report"
        for path, part in cases.items():
            for words in ((path, self.record), (self.record, path)):
                line = self.refused(2, "diff", *words)
                self.assertIn(part, line)
                self.assertIn(path, line)
        self.refused(2, "diff", self.record)
        for tolerance in ("-1", "nan", "x"):
            line = self.refused(2, "diff", "--tolerance", tolerance, self.record, self.record)
            self.assertIn("is no number from 0", line)


class Window(tool_support.Case):
    def window_of(self, *words):
        """The window that the program sees, in ms from the start of the tool: no earlier, no later."""
        first = time.monotonic() * 1000
        result = self.hostwait("run", "-q", *words, "--", "printenv", "HOSTWAIT_OPTIONS")
        last = time.monotonic() * 1000
        self.assertEqual(result.returncode, 0, result.stderr)
        begin, end = (int(part) for part in re.search(r"window=(\d+),(\d+)", result.stdout).groups())
        return first, last, begin, end

    def test_after_and_duration(self):
        first, last, begin, end = self.window_of("--after", "30s", "--duration", "1m")
        self.assertTrue(first - 1 <= begin - 30000 <= last, (first, begin, last))
        self.assertEqual(end - begin, 60000)

    def test_one_of_the_two(self):
        first, last, begin, end = self.window_of("--after", "1500ms")
        self.assertTrue(first - 1 <= begin - 1500 <= last)
        self.assertEqual(end, 0)
        first, last, begin, end = self.window_of("--duration", "0.5h")
        self.assertTrue(first - 1 <= begin <= last)
        self.assertEqual(end - begin, 1800000)

    def test_it_is_said(self):
        result = self.hostwait("run", "--after", "30s", "--duration", "60s", "--", "true")
        self.assertIn("recorded only from 30 s to 90 s after the start", result.stderr)

    def test_no_window_is_the_default(self):
        result = self.hostwait("run", "-q", "--level", "log", "--", "printenv", "HOSTWAIT_OPTIONS")
        self.assertEqual(result.stdout, "level=log\n")

    def test_wrong_times(self):
        for words in (["--after", "30"], ["--after", "-1s"], ["--duration", "0s"], ["--duration", "soon"], ["--after", "5x"], ["--window", "1,2"]):
            self.refused(2, "run", *words, "--", "touch", self.path("ran"))
            self.assertFalse(os.path.exists(self.path("ran")))


if __name__ == "__main__":
    tool_support.main()
