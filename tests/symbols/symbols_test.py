# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""symbols.modules: where names and lines come from and what happens where they are missing: separate
debug files, servers of them, stripped, replaced, missing, cut and damaged modules, generated code,
hostile names. Builds its programs with cc; needs objcopy."""

import ctypes.util
import http.server
import json
import os
import pathlib
import platform
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "gpu"))
import expected_lines  # noqa: E402: the folder is known only now

TOOL = os.environ["HOSTWAIT_TOOL"]
LINES = pathlib.Path(os.environ["HOSTWAIT_LINES"])
LINES_SOURCE = HERE.parent / "gpu" / "lines" / "lines.cpp"
INCLUDE = [f"-I{folder}" for folder in os.environ["HOSTWAIT_INCLUDES"].split(":")]
NVTX = os.environ.get("HOSTWAIT_NVTX_INCLUDE", "")


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=120, **more)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hostwait-symbols-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.records = self.folder / "records"
        self.records.mkdir()

    def ran(self, *command):
        """The text report of a run that ended well; its record lies in self.records."""
        done = run(TOOL, "run", "--output", self.records, "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def report(self, *flags, env=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
        done = run(TOOL, "report", "--format", "json", *flags, self.records,
                   env={**environment, **(env or {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def copied(self, name="lines"):
        program = self.folder / name
        shutil.copy(LINES, program)
        return program

    def split(self, program, debug):
        """Moves the debug information of a program into a file of its own."""
        self.must("objcopy", "--only-keep-debug", program, debug)
        self.must("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)

    def must(self, *command, **more):
        done = run(*command, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_lines(self, report):
        wrong = [r for r in expected_lines.judge(LINES_SOURCE, report["findings"]) if not r[1]]
        self.assertEqual(wrong, [])

    def assert_no_lines(self, report, program):
        """Module and offset in place of names, and one note that says why."""
        own = [frame for f in report["findings"] for frame in f["native"]
               if frame["module"] == str(program)]
        self.assertTrue(own)
        self.assertTrue(all(frame["line"] == 0 and frame["file"] == "" for frame in own))
        notes = [note for note in report["notes"] if str(program) in note]
        self.assertEqual(len(notes), 1, report["notes"])
        return notes[0]


class SeparateFiles(Case):
    def test_beside_the_program(self):
        program = self.copied()
        self.split(program, self.folder / "lines.debug")
        self.ran(program)
        self.assert_lines(self.report())

    def test_in_the_folder_debug(self):
        program = self.copied()
        self.folder.joinpath(".debug").mkdir()
        self.split(program, self.folder / "lines.debug")
        self.folder.joinpath("lines.debug").rename(self.folder / ".debug" / "lines.debug")
        self.ran(program)
        self.assert_lines(self.report())

    def test_of_another_build_is_not_used(self):
        program = self.copied()
        self.split(program, self.folder / "lines.debug")
        other = self.folder / "other"
        source = self.folder / "other.c"
        source.write_text("int main(void) { return 0; }\n")
        self.must("cc", "-g", "-Wl,--build-id", source, "-o", other)
        self.must("objcopy", "--only-keep-debug", other, self.folder / "lines.debug")
        self.ran(program)
        self.assertIn("no debug information", self.assert_no_lines(self.report(), program))

    def test_stripped(self):
        program = self.copied()
        self.must("objcopy", "--strip-all", program)
        text = self.ran(program)
        self.assertIn("lines+0x", text)
        self.assertIn("no debug information", self.assert_no_lines(self.report(), program))

    def test_symbols_without_lines(self):
        program = self.copied()
        self.must("objcopy", "--strip-debug", program)
        self.assertIn("loss_of", self.ran(program))
        self.assertIn("build with -g", self.assert_no_lines(self.report(), program))


class Servers(Case):
    """debuginfod, by a server of this test."""

    def setUp(self):
        super().setUp()
        if ctypes.util.find_library("debuginfod") is None:
            self.skipTest("libdebuginfod is not installed")
        self.program = self.copied()
        self.folder.joinpath("apart").mkdir()
        self.debug = self.folder / "apart" / "lines.debug"
        self.split(self.program, self.debug)
        notes = self.must("readelf", "-n", self.program)
        self.id = notes.split("Build ID:")[1].split()[0]
        self.ran(self.program)
        self.cache = {"DEBUGINFOD_CACHE_PATH": str(self.folder / "cache")}

    def serve(self):
        asked, debug, wanted = [], self.debug, f"/buildid/{self.id}/debuginfo"

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                if self.path != wanted:
                    self.send_error(404)
                    return
                data = debug.read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return asked, {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}", **self.cache}

    def test_asked_on_request_only(self):
        asked, env = self.serve()
        self.assert_no_lines(self.report(env=env), self.program)
        self.assertEqual(asked, [])
        self.assert_lines(self.report("--debuginfod", env=env))
        self.assertTrue(asked)

    def test_a_folder_in_the_servers_layout(self):
        place = self.folder / "store" / "buildid" / self.id
        place.mkdir(parents=True)
        shutil.copy(self.debug, place / "debuginfo")
        self.assert_lines(self.report("--debuginfod", env={
            "DEBUGINFOD_URLS": f"file://{self.folder}/store", **self.cache}))

    def test_a_server_that_does_not_answer(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        start = time.monotonic()
        report = self.report("--debuginfod", env={
            "DEBUGINFOD_URLS": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "DEBUGINFOD_TIMEOUT": "1", "DEBUGINFOD_MAXTIME": "1", **self.cache})
        self.assert_no_lines(report, self.program)
        self.assertLess(time.monotonic() - start, 60)

    def test_without_urls_it_is_refused(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
        done = run(TOOL, "report", "--debuginfod", self.records, env=environment)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("DEBUGINFOD_URLS is not set", done.stderr)


class Changed(Case):
    def plugin(self, path, function, *flags):
        self.must("cc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", f"-DFUNCTION={function}",
                  *flags, HERE / "plugin.c", "-o", path)

    def odd_program(self, *flags):
        program = self.folder / "odd"
        self.must("cc", "-g", "-O1", *INCLUDE, *flags, HERE / "program.c", "-o", program,
                  "-pthread", "-ldl", "-rdynamic")
        return program

    def test_unloaded_since(self):
        plugin = self.folder / "plugin.so"
        self.plugin(plugin, "waits_in_plugin")
        self.ran(self.odd_program(), "plugin", plugin, "waits_in_plugin")
        frames = [(frame["function"], pathlib.Path(frame["file"]).name, frame["line"])
                  for f in self.report()["findings"] for frame in f["native"]]
        line = HERE.joinpath("plugin.c").read_text().split("\n").index(
            "  int result = call(); /* the wait */") + 1
        self.assertIn(("waits_in_plugin", "plugin.c", line), frames)

    def test_replaced_during_the_run(self):
        plugin = self.folder / "plugin.so"
        self.plugin(plugin, "first_one")
        self.plugin(f"{plugin}.next", "second_one", "-DPADDING=64")
        self.ran(self.odd_program(), "plugin", plugin, "first_one", "second_one")
        report = self.report()
        functions = {frame["function"] for f in report["findings"] for frame in f["native"]
                     if frame["module"] == str(plugin)}
        self.assertEqual(functions, {"", "second_one"})
        self.assertTrue(any("changed since the run" in note and "plugin.so" in note
                            for note in report["notes"]), report["notes"])

    def test_missing_since(self):
        plugin = self.folder / "plugin.so"
        self.plugin(plugin, "waits_in_plugin")
        self.ran(self.odd_program(), "plugin", plugin, "waits_in_plugin")
        plugin.unlink()
        note = self.assert_no_lines(self.report(), plugin)
        self.assertIn("no names", note)

    def test_code_in_no_file(self):
        if platform.machine() != "x86_64":
            self.skipTest("the program's code is x86-64's")
        self.ran(self.odd_program(), "generated")
        report = self.report()
        calls = sum(f["calls"] for f in report["findings"])
        self.assertEqual(calls, 100)
        innermost = report["findings"][0]["native"][0]
        self.assertEqual((innermost["function"], innermost["line"] > 0), ("call", True))

    def worker(self):
        """A program and a library, by its name one of PyTorch's, that works on a thread."""
        library = self.folder / "libtorch_played.so"
        self.must("cc", "-g", "-O1", "-shared", "-fPIC", HERE / "worker.c", "-o", library,
                  "-pthread")
        program = self.folder / "odd"
        self.must("cc", "-g", "-O1", "-DHAVE_WORKER", *INCLUDE, HERE / "program.c", library, "-o",
                  program, "-pthread", "-ldl", f"-Wl,-rpath,{self.folder}")
        return program

    def test_a_librarys_thread(self):
        text = self.ran(self.worker(), "worker")
        finding = self.report()["findings"][0]
        self.assertEqual(finding["thread_names"], ["fake_worker"])
        for each in (text, finding["where"]):
            self.assertIn("on a library's thread: the line that caused it is not known", each)
        self.assertNotIn("program.c", finding["where"])

    def test_the_programs_function_on_a_librarys_thread(self):
        text = self.ran(self.worker(), "callback")
        finding = self.report()["findings"][0]
        self.assertEqual(finding["thread_names"], ["fake_worker"])
        self.assertNotIn("a library's thread", text)
        self.assertRegex(finding["where"], r"^program\.c:\d+ call")

    def test_a_stack_that_was_cut_proves_nothing(self):
        self.worker()
        done = run(TOOL, "run", "--stacks", "1", "--output", self.records, "--",
                   self.folder / "odd", "worker")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("a library's thread", done.stderr)

    def test_hostile_names(self):
        flags = ["-DHAVE_NVTX", f"-I{NVTX}"] if NVTX else []
        part = self.folder / "odd.o"
        self.must("cc", "-g", "-O1", *INCLUDE, *flags, "-c", HERE / "program.c", "-o", part)
        self.must("objcopy", "--redefine-sym", "hostile_name=\x1b[31mred\nforged line\u202e", part)
        program = self.folder / "odd\x1b[1mprogram"
        self.must("cc", part, "-o", program, "-pthread", "-ldl")
        text = self.ran(program, "hostile")
        shown = self.must(TOOL, "report", self.records)
        for each in (text, shown):
            bad = [c for c in each if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0
                   or c == "\u202e" or 0xd800 <= ord(c) < 0xe000]
            self.assertEqual(bad, [], each)
            self.assertFalse(any(line.startswith("forged") for line in each.splitlines()))
            self.assertIn("label\\x1b[31m", each)
            if NVTX:
                self.assertIn("range\\x1b]0;owned", each)
        report = self.report()
        finding = report["findings"][0]
        self.assertTrue(finding["label"].startswith("label\x1b[31m\r\"\\"))
        self.assertTrue(any(frame["file"] == "/x/\x1b[2Jsource.c" and frame["line"] == 7
                            for frame in finding["native"]), finding["native"])
        raw = run(TOOL, "report", "--format", "json", self.records).stdout
        self.assertTrue(raw.isascii())
        self.assertNotIn("\x1b", raw)


class Damaged(Case):
    """Modules that are cut or hold nonsense where names are looked up: the report still comes."""

    def test_cut(self):
        program = self.copied()
        self.ran(program)
        whole = program.read_bytes()
        for part in (0, 1, 16, 63, 64, 100, 4096, *(len(whole) * n // 8 for n in range(1, 8))):
            program.write_bytes(whole[:part])
            self.assertTrue(self.report()["findings"], f"{part} bytes")

    def test_noise(self):
        program = self.copied()
        self.ran(program)
        whole = program.read_bytes()
        chance = random.Random(5)
        for attempt in range(int(os.environ.get("HOSTWAIT_DAMAGED_MODULES", "24"))):
            damaged = bytearray(whole)
            # Mostly behind the first quarter: there the debug information lies.
            for _ in range(chance.choice((1, 8, 64, 512))):
                low = 64 if chance.random() < 0.1 else len(whole) // 4
                damaged[chance.randrange(low, len(whole))] = chance.randrange(256)
            program.write_bytes(damaged)
            self.assertTrue(self.report()["findings"], f"attempt {attempt}")


if __name__ == "__main__":
    if shutil.which("objcopy") is None or shutil.which("cc") is None:
        print("skipped: needs cc and objcopy")
        sys.exit(77)
    unittest.main()
