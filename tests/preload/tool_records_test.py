# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""report, check, collect, set and doctor on records that were made for the test."""

import json
import os
import shutil
import struct
import subprocess

import tool_support
from tool_support import MAKE_RECORDS, SCHEMAS, STUB, TOOL

try:
    import jsonschema
except ImportError:
    jsonschema = None


# Places in the header of record.h.
START_REAL_NS = 72
EXTENT_COUNT = 656


class RecordCase(tool_support.Case):
    def make(self, *words, folder=None):
        """A record in `folder` (default: the test's); returns its path."""
        folder = folder or self.folder
        before = set(self.records(folder))
        subprocess.run([MAKE_RECORDS, "as-shim", "folder", folder, *words], check=True, env=self.environment)
        (name,) = set(self.records(folder)) - before
        return os.path.join(folder, name)


def check_by_hand(value, schema, root, where="$"):
    """The part of JSON Schema that the schema uses, for machines without jsonschema."""
    if "$ref" in schema:
        check_by_hand(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    for each in schema.get("allOf", ()):
        check_by_hand(value, each, root, where)
    if "const" in schema:
        assert value == schema["const"], where
    if "enum" in schema:
        assert value in schema["enum"], (where, value)
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    if "type" in schema:
        assert isinstance(value, types[schema["type"]]), where
        assert not (schema["type"] == "integer" and isinstance(value, bool)), where
    if "minimum" in schema:
        assert value >= schema["minimum"], where
    for name in schema.get("required", ()):
        assert name in value, (where, name)
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            check_by_hand(value[name], inner, root, f"{where}.{name}")
    if isinstance(value, list):
        assert len(value) >= schema.get("minItems", 0), where
        assert len(value) <= schema.get("maxItems", len(value)), where
        for i, item in enumerate(value):
            check_by_hand(item, schema.get("items", {}), root, f"{where}[{i}]")


class Report(RecordCase):
    def test_text_on_stdout(self):
        path = self.make()
        result = self.hostwait("report", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertIn("train.py:42 step < libtorch_cuda.so+0x1234", result.stdout)
        self.assertIn(f"record {path}\n", result.stdout)
        self.assertNotIn("next:", result.stdout)
        limited = self.hostwait("report", "--limit", "1", path).stdout
        self.assertIn("and 1 more", limited)

    def test_json_keeps_its_schema(self):
        with open(os.path.join(SCHEMAS, "report.schema.json")) as file:
            schema = json.load(file)
        self.make("violation")
        self.make("blind", "config_error")
        for words in (["report", "--format", "json", self.folder], ["report", "--format", "json", "--by", "thread", self.folder], ["report", "--format", "json", "--limit", "1", self.folder]):
            document = json.loads(self.hostwait(*words).stdout)
            check_by_hand(document, schema, schema)
            if jsonschema is not None:
                jsonschema.Draft202012Validator.check_schema(schema)
                jsonschema.validate(document, schema)
            self.assertEqual(document["findings_total"], 2)
        self.assertEqual(len(document["findings"]), 1)
        self.assertTrue(document["coverage"]["blind"])
        broken = json.loads(json.dumps(document))
        broken["findings"][0]["kind"] = "novel"
        with self.assertRaises(AssertionError):
            check_by_hand(broken, schema, schema)

    def test_views(self):
        path = self.make()
        text = self.hostwait("report", "--by", "function", path).stdout
        self.assertIn("\n step (train.py) ", text)
        self.assertNotIn("advice", text)
        text = self.hostwait("report", "--detail", path).stdout
        self.assertIn("(docs/advice.md#async_copy)\n", text)
        text = self.hostwait("report", "--format", "folded", path).stdout
        for line in text.splitlines():
            self.assertRegex(line, r"^[^;]+(;[^;]+)* [1-9][0-9]*$")
        self.assertEqual(len(text.splitlines()), 2)
        for words in (["--by", "line", "--format", "folded"], ["--limit", "3", "--format", "speedscope"], ["--detail", "--format", "json"], ["--detail", "--by", "line"], ["--by", "finding"]):
            self.refused(2, "report", *words, path)

    def test_speedscope_keeps_the_essentials_of_its_format(self):
        document = json.loads(self.hostwait("report", "--format", "speedscope", self.make()).stdout)
        self.assertEqual(document["$schema"], "https://www.speedscope.app/file-format-schema.json")
        frames = document["shared"]["frames"]
        self.assertTrue(frames)
        for frame in frames:
            self.assertIsInstance(frame["name"], str)
            self.assertLessEqual(set(frame), {"name", "file", "line", "col"})
        self.assertTrue(document["profiles"])
        for profile in document["profiles"]:
            self.assertEqual(set(profile), {"type", "name", "unit", "startValue", "endValue", "samples", "weights"})
            self.assertEqual((profile["type"], profile["unit"]), ("sampled", "nanoseconds"))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(profile["endValue"] - profile["startValue"], sum(profile["weights"]))
            for sample in profile["samples"]:
                self.assertTrue(sample)
                self.assertTrue(all(0 <= frame < len(frames) for frame in sample))

    def test_several_runs_are_several_tables(self):
        for run in ("aa", "bb"):
            self.environment["HOSTWAIT_RUN_ID"] = run
            self.make()
        self.assertEqual(self.hostwait("report", self.folder).stdout.count("hostwait: 2 findings"), 2)

    def test_without_arguments_the_newest_run(self):
        self.environment["XDG_RUNTIME_DIR"] = self.path("runtime")
        os.mkdir(self.path("runtime"))
        path = self.make(folder=self.path("runtime"))
        # Newer than any other record that may lie in the live folders.
        with open(path, "r+b") as file:
            file.seek(START_REAL_NS)
            file.write(struct.pack("<Q", 2**63))
        result = self.hostwait("report")
        self.assertIn(path, result.stdout)

    def test_unreadable_input_is_2_with_one_line(self):
        path = self.make()
        with open(path, "rb") as file:
            whole = file.read()
        cases = {
            "empty": (b"", "empty"),
            "text": (b"hello", "not a record"),
            "cut": (whole[:-100], "cut short"),
            "header": (whole[:512], "cut short"),
            "major": (whole[:8] + b"\x09\x00" + whole[10:], "format 9."),
            "hostile": (whole[:EXTENT_COUNT] + b"\xff" * 4 + whole[EXTENT_COUNT + 4 :], "damaged"),
        }
        for name, (content, part) in cases.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
            for command in ("report", "check"):
                line = self.refused(2, command, self.path(name))
                self.assertIn(part, line)
                self.assertIn(self.path(name), line)
        self.assertIn("No such file", self.refused(2, "report", self.path("none")))
        os.mkdir(self.path("folder"))
        self.assertIn("no record in this folder", self.refused(2, "report", self.path("folder")))
        self.refused(2, "report", "--format", "xml", path)

    def test_a_full_disk_is_not_a_report(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "report", self.make()], stdout=full, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot be written", done.stderr)

    def test_hostile_names_are_escaped_in_messages(self):
        line = self.refused(2, "report", self.path("a\x1b[2Jb\nc"))
        self.assertIn("a\\x1b[2Jb\\nc", line)


class Check(RecordCase):
    def test_statuses(self):
        for words, options, status in (
            ([], [], 0),
            ([], ["--require-cuda"], 0),
            (["violation"], [], 86),
            (["blind"], [], 0),
            (["blind"], ["--require-cuda"], 87),
            (["blind", "violation"], ["--require-cuda"], 86),
            (["violation", "config_error"], [], 2),
        ):
            path = self.make(*words)
            result = self.hostwait("check", *options, path)
            self.assertEqual(result.returncode, status, (words, result.stderr))
            self.assertEqual(result.stdout, "")
            self.assertEqual(result.stderr.count("\n"), 0 if status == 0 else 1)
            self.assertEqual(self.hostwait("check", "--quiet", *options, path).stderr, "")
        self.assertEqual(self.hostwait("check", self.folder).returncode, 2)

    def test_a_record_without_calls(self):
        os.mkdir(self.path("corpus"))
        subprocess.run([MAKE_RECORDS, "corpus", self.path("corpus")], check=True)
        nothing = self.path("corpus", "nothing")
        self.assertEqual(self.hostwait("check", nothing).returncode, 0)
        self.assertEqual(self.hostwait("check", "--require-cuda", nothing).returncode, 87)
        self.assertIn("no CUDA driver call seen", self.hostwait("report", nothing).stdout)
        self.refused(2, "check")


class Live(RecordCase):
    def live(self, folder):
        process = subprocess.Popen([MAKE_RECORDS, "live", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def control(self, process):
        out, _ = process.communicate("", timeout=30)
        paused, actions, generation = out.split()
        return int(paused), int(actions, 16), int(generation)

    def test_set_reaches_the_process(self):
        process, _ = self.live(self.folder)
        for change in (["pause"], ["level=log", "level=error@copy,explicit"], ["level=allow@free"]):
            result = self.hostwait("set", str(process.pid), *change)
            self.assertEqual(result.returncode, 0, result.stderr)
        paused, actions, generation = self.control(process)
        self.assertEqual((paused, generation), (1, 3))
        # log is 2 (1 + 1), error 4, allow 1; kinds 0 to 3 error, 4, 5 and 7 to 10 log, 6 allow.
        self.assertEqual(actions, 0x22221224444)

    def test_resume(self):
        process, _ = self.live(self.folder)
        self.hostwait("set", str(process.pid), "pause")
        self.hostwait("set", str(process.pid), "resume")
        self.assertEqual(self.control(process), (0, 0, 2))

    def test_wrong_changes_change_nothing(self):
        process, _ = self.live(self.folder)
        for words, part in ((["levle=log"], "levle"), (["level=erorr"], "erorr"), (["pause", "level=log@x"], "x"), ([], "change")):
            self.assertIn(part, self.refused(2, "set", str(process.pid), *words))
        self.assertEqual(self.control(process), (0, 0, 0))
        self.assertIn("writes no record", self.refused(2, "set", str(os.getpid()), "pause"))
        self.refused(2, "set", "abc", "pause")

    def test_a_running_process_is_said_to_run(self):
        process, path = self.live(self.folder)
        result = self.hostwait("report", path)
        self.assertIn("still runs", result.stdout)
        process.communicate("")
        self.assertIn("without closing its record", self.hostwait("report", path).stdout)

    def test_collect_takes_ended_processes_only(self):
        # Not from the live folders: other tests' records lie there.
        os.mkdir(self.path("runtime"))
        os.mkdir(self.path("out"))
        ended = self.make(folder=self.path("runtime"))
        process, path = self.live(self.path("runtime"))
        result = self.hostwait("collect", self.path("out"), "--from", self.path("runtime"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.records(self.path("out")), [os.path.basename(ended)])
        self.assertIn("still writes it", result.stderr)
        self.assertTrue(os.path.exists(path))
        process.communicate("")
        self.assertIn("no folder that can be written", self.refused(2, "collect", self.path("none")))


class Doctor(tool_support.Case):
    def test_one_screen(self):
        result = self.hostwait("doctor")
        self.assertIn(result.returncode, (0, 1))
        self.assertEqual(result.returncode, 1 if "\nFAIL" in result.stdout else 0)
        self.assertLessEqual(result.stdout.count("\n"), 24)
        self.assertIn(os.path.join(STUB, "libhostwait.so"), result.stdout)
        self.assertIn("a program started here has the shim in it", result.stdout)
        self.assertIn("not seen", result.stdout)

    def test_a_driver_that_crashes_is_a_finding(self):
        shutil.copy(os.path.join(STUB, "libhostwait.so"), self.path("libcuda.so.1"))
        result = self.hostwait("doctor", env={**self.environment, "LD_LIBRARY_PATH": self.folder})
        self.assertEqual(result.returncode, 1)  # a library without cuDriverGetVersion is no driver

    def test_without_the_shim(self):
        shutil.copy(TOOL, self.path("hostwait"))
        del self.environment["HOSTWAIT_LIBDIR"]
        done = subprocess.run([self.path("hostwait"), "doctor"], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL shim", done.stdout)


if __name__ == "__main__":
    tool_support.main()
