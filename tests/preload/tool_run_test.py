# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""hostwait run: exit status, options, environment, records, with ordinary programs."""

import json
import os
import shutil
import subprocess

import tool_support
from tool_support import MAKE_RECORDS, STUB, TOOL


class Status(tool_support.Case):
    def test_the_programs_own_status(self):
        for words, status in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 3"], 3), (["sh", "-c", "exit 255"], 255)):
            result = self.hostwait("run", "--", *words)
            self.assertEqual(result.returncode, status, result.stderr)

    def test_missing_and_not_executable(self):
        open(self.path("plain"), "w").close()
        self.assertIn("program not found", self.refused(127, "run", "--", "no-such-program"))
        self.assertIn("program not found", self.refused(127, "run", "--", "./no/such"))
        self.assertIn("program not found", self.refused(127, "run", "--", ""))
        self.assertIn("cannot be executed", self.refused(126, "run", "--", "./plain"))
        self.assertIn("Is a directory", self.refused(126, "run", "--", self.folder))
        bad = self.path("bad-interpreter")
        with open(bad, "w") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(bad, 0o755)
        self.refused(127, "run", "--", bad)

    def test_a_script_without_interpreter_line(self):
        script = self.path("script")
        with open(script, "w") as file:
            file.write('exit "$1"\n')
        os.chmod(script, 0o755)
        self.assertEqual(self.hostwait("run", "--", script, "7").returncode, 7)

    def test_the_programs_words_are_its_own(self):
        words = ["--level", "--", "-h", "--version", "", "a b", "run"]
        result = self.hostwait("run", "--", "printf", "%s\n", *words)
        self.assertEqual(result.stdout.split("\n")[:-1], words)

    def test_input_and_output_are_the_programs(self):
        result = self.hostwait("run", "-q", "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(result.stdout, "out\n")
        self.assertIn("err\n", result.stderr)

    def test_no_call_seen_is_said_and_is_a_status_on_request(self):
        result = self.hostwait("run", "--", "true")
        self.assertIn("no CUDA driver call seen in true", result.stderr)
        self.assertIn("does not mean that nothing waited", result.stderr)
        self.assertEqual(self.records(), [])
        result = self.hostwait("run", "--require-cuda", "--", "true")
        self.assertEqual(result.returncode, 87)
        self.assertEqual(self.hostwait("run", "--require-cuda", "--", "false").returncode, 1)
        self.assertEqual(self.hostwait("run", "--quiet", "--", "true").stderr, "")


class Options(tool_support.Case):
    def test_wrong_options_end_before_the_start(self):
        marker = ["--", "touch", self.path("ran")]
        for words, parts in (
            (["--level", "erorr"], ["--level", "erorr", "abort"]),
            (["--level", "log@copi"], ["copi", "async_copy"]),
            (["--stacks", "65"], ["--stacks", "65", "0 to 64"]),
            (["--arm", "copy"], ["--arm", "copy", "queue_full"]),
            (["--threshold-us", "fast"], ["--threshold-us", "fast"]),
            (["--trace"], ["--trace", "sums only"]),
            (["--policy", "x"], ["--policy", "no rules file"]),
            (["--own-cost", "a"], ["--own-cost", "120,1"]),
            (["--format", "xml"], ["--format", "xml"]),
            (["--levle", "log"], ["--levle"]),
            (["--profile", self.path("none")], ["--profile", "none cannot be read", "probe --save"]),
            (["--profile", __file__], ["--profile", "line 1: "]),
            (["--limit", "-1"], ["--limit", "'-1' is no number from 0"]),
            (["--duration", "0s"], ["--duration", "from 0.001"]),
            (["surplus"], ["surplus"]),
            (["--output"], ["--output"]),
        ):
            line = self.refused(2, "run", *words, *marker)
            for part in parts:
                self.assertIn(part, line)
            self.assertFalse(os.path.exists(self.path("ran")))
        self.assertIn("HOSTWAIT_OPTIONS", self.refused(2, "run", *marker, env={**self.environment, "HOSTWAIT_OPTIONS": "levle=log"}))
        self.assertIn("no program", self.refused(2, "run"))
        self.assertIn("no program", self.refused(2, "run", "--"))
        self.refused(2, "run", "true")
        self.refused(2)
        self.assertIn("'nonsense' is no command", self.refused(2, "nonsense"))
        self.assertIn("'nonsense' is no command", self.refused(2, "-v", "nonsense"))
        self.refused(2, "report", "--", "true")

    def test_output_that_cannot_be_written(self):
        self.assertIn("is no folder", self.refused(2, "run", "--output", self.path("none"), "--", "true"))
        open(self.path("file"), "w").close()
        self.assertIn("is no folder", self.refused(2, "run", "--output", self.path("file"), "--", "true"))
        # /proc refuses new files, also to root.
        line = self.refused(2, "run", "--output", "/proc", "--", "true")
        self.assertIn("/proc cannot be written", line)
        self.assertIn("--output DIR", line)

    def test_flags_become_options_behind_the_given_ones(self):
        result = self.hostwait(
            "run", "-q", "--level", "log", "--level", "error@copy,explicit", "--arm", "poll",
            "--range", "a:b\\c", "--own-cost", "10,4", "--threshold-us", "50", "--", "printenv", "HOSTWAIT_OPTIONS",
            env={**self.environment, "HOSTWAIT_OPTIONS": "stacks=8"},
        )
        parts = result.stdout.strip().replace("\\:", "|").split(":")
        self.assertEqual(parts[0], "stacks=8")
        self.assertEqual(
            sorted(parts[1:]),
            sorted(["level=log", "level=error@copy,explicit", "arm=poll", "range=a|b\\\\c", "own_cost=10,4", "threshold_us=50"]),
        )
        self.assertLess(parts.index("level=log"), parts.index("level=error@copy,explicit"))

    def test_a_flag_can_be_switched_off(self):
        for word, option in (("--gap", "gap=1"), ("--gap=1", "gap=1"), ("--gap=0", "gap=0"), ("--trace=0", "trace=0")):
            result = self.hostwait("run", "-q", word, "--", "printenv", "HOSTWAIT_OPTIONS")
            self.assertEqual(result.stdout.strip(), option)

    def test_help_names_every_flag(self):
        result = self.hostwait("run", "--help")
        self.assertEqual(result.returncode, 0)
        for flag in ("--level", "--arm", "--output", "--threshold-us", "--own-cost", "--require-cuda", "--format", "--quiet", "--capture-range"):
            self.assertIn(flag, result.stdout)
        self.assertEqual(self.hostwait("--help").returncode, 0)
        self.assertRegex(self.hostwait("--version").stdout, r"^hostwait \d+\.\d+\.\d+\n$")


class Environment(tool_support.Case):
    def test_nvtx_injection(self):
        result = self.hostwait("run", "-q", "--", "printenv", "NVTX_INJECTION64_PATH")
        self.assertTrue(result.stdout.strip().endswith("libhostwait.so"), result.stdout)
        result = self.hostwait("run", "-q", "--", "printenv", "NVTX_INJECTION64_PATH",
                               env={**self.environment, "NVTX_INJECTION64_PATH": "/opt/other.so"})
        self.assertEqual(result.stdout.strip(), "/opt/other.so")
        self.assertIn("NVTX_INJECTION64_PATH is /opt/other.so", result.stderr)

    def preload_of(self, **changes):
        result = self.hostwait("run", "-q", "--", "printenv", "LD_PRELOAD", env={**self.environment, **changes})
        return result.stdout.strip().split(":")

    def test_the_shim_is_in_the_program(self):
        result = self.hostwait("run", "-q", "--", TOOL, "--selftest")
        self.assertIn("preloaded=1\n", result.stdout)
        self.assertEqual(self.preload_of(), [os.path.join(STUB, "libhostwait.so")])

    def test_existing_preloads_are_kept_and_sanitizers_stay_first(self):
        ours = os.path.join(STUB, "libhostwait.so")
        other = self.path("libother.so")
        sanitizer = self.path("libasan.so.8")
        for path in (other, sanitizer):
            shutil.copy(ours, path)
        self.assertEqual(self.preload_of(LD_PRELOAD=other), [ours, other])
        self.assertEqual(self.preload_of(LD_PRELOAD=f"{sanitizer} {other}"), [sanitizer, ours, other])

    def test_the_link_library_is_left_out_on_request(self):
        shutil.copy(os.path.join(STUB, "libhostwait.so"), self.path("libhostwait.so"))
        shutil.copy(os.path.join(STUB, "libhostwait.so"), self.path("libhostwait_link.so"))
        self.environment["HOSTWAIT_LIBDIR"] = self.folder
        both = [self.path("libhostwait.so"), self.path("libhostwait_link.so")]
        self.assertEqual(self.preload_of(), both)
        self.assertEqual(self.preload_of(HOSTWAIT_OPTIONS="routes=nolink"), both[:1])
        result = self.hostwait("run", "-q", "--routes", "nolink", "--", "printenv", "LD_PRELOAD")
        self.assertEqual(result.stdout.strip(), both[0])

    def test_a_path_with_space_or_colon_goes_through_a_link(self):
        for name in ("with space", "with:colon"):
            folder = self.path(name)
            os.mkdir(folder)
            shutil.copy(os.path.join(STUB, "libhostwait.so"), folder)
            environment = {**self.environment, "HOSTWAIT_LIBDIR": folder}
            result = self.hostwait("run", "-q", "--", TOOL, "--selftest", env=environment)
            self.assertIn("preloaded=1\n", result.stdout)
            result = self.hostwait("run", "-q", "--", "printenv", "LD_PRELOAD", env=environment)
            link = result.stdout.strip()
            self.assertNotIn(" ", link)
            self.assertFalse(os.path.lexists(link), "the link is removed at the end")

    def test_without_the_shim_nothing_is_started(self):
        copy = self.path("bin", "hostwait")
        os.mkdir(self.path("bin"))
        shutil.copy(TOOL, copy)
        del self.environment["HOSTWAIT_LIBDIR"]
        result = subprocess.run(
            [copy, "run", "--", "touch", self.path("ran")], env=self.environment, cwd=self.folder, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 2)
        self.assertIn("libhostwait.so not found in", result.stderr)
        self.assertFalse(os.path.exists(self.path("ran")))
        # The layouts of a build tree and of an installation.
        for lib in ("lib", "lib/hostwait"):
            os.makedirs(self.path(lib), exist_ok=True)
            shutil.copy(os.path.join(STUB, "libhostwait.so"), self.path(lib))
            result = subprocess.run(
                [copy, "run", "-q", "--", "printenv", "LD_PRELOAD"], env=self.environment, cwd=self.folder, capture_output=True, text=True
            )
            self.assertEqual(result.stdout.strip(), self.path(lib, "libhostwait.so"), result.stderr)
            os.unlink(self.path(lib, "libhostwait.so"))

    def test_programs_out_of_reach_are_explained(self):
        result = self.hostwait("run", "--", os.environ["HOSTWAIT_STATIC_PROGRAM"])
        self.assertEqual(result.returncode, 3)
        self.assertIn("linked statically: LD_PRELOAD does not reach it", result.stderr)


class Records(tool_support.Case):
    def test_the_run_ends_with_its_table_and_its_record(self):
        result = self.hostwait("run", "--", MAKE_RECORDS, "as-shim")
        self.assertEqual(result.returncode, 0, result.stderr)
        (name,) = self.records()
        lines = result.stderr.splitlines()
        self.assertRegex(lines[0], r"^hostwait: 2 findings in python3 \(\d+\): 401 ms waited of 9.8 s; driver 580.159; routes dlsym, cuGetProcAddress$")
        self.assertRegex(lines[2], r"^ cudaMemcpyAsync \+ StreamSynchronize +async_copy +100 ")
        self.assertEqual(lines[-1], f"record ./{name}    next: hostwait report ./{name}")
        again = self.hostwait("report", name)
        self.assertEqual(again.stdout.splitlines()[1:4], lines[1:4])

    def test_children_belong_to_the_run_and_others_do_not(self):
        other = self.hostwait("run", "-q", "--output", self.folder, "--", MAKE_RECORDS, "as-shim")
        self.assertEqual(other.returncode, 0)
        os.mkdir(self.path("mine"))
        result = self.hostwait(
            "run", "--output", self.path("mine"), "--", "sh", "-c", f"'{MAKE_RECORDS}' as-shim & '{MAKE_RECORDS}' as-shim; wait"
        )
        self.assertEqual(len(self.records(self.path("mine"))), 2, result.stderr)
        self.assertIn("and 1 more process", result.stderr)
        self.assertIn("2 findings", result.stderr)

    def test_violations_end_a_clean_program_with_86(self):
        result = self.hostwait("run", "--", MAKE_RECORDS, "as-shim", "violation")
        self.assertEqual(result.returncode, 86)
        self.assertIn("60 violations", result.stderr)
        result = self.hostwait("run", "--", MAKE_RECORDS, "as-shim", "violation", "exit", "4")
        self.assertEqual(result.returncode, 4)
        self.assertIn("60 violations", result.stderr)

    def test_blind_is_87_only_on_request(self):
        self.assertEqual(self.hostwait("run", "--", MAKE_RECORDS, "as-shim", "blind").returncode, 0)
        result = self.hostwait("run", "--require-cuda", "--", MAKE_RECORDS, "as-shim", "blind")
        self.assertEqual(result.returncode, 87)
        self.assertTrue(result.stderr.splitlines()[1].startswith("blind:"))

    def test_options_may_name_the_live_folder(self):
        os.mkdir(self.path("live"))
        environment = {**self.environment, "HOSTWAIT_OPTIONS": f"output={self.path('live')}"}
        self.hostwait("run", "-q", "--", MAKE_RECORDS, "as-shim", "folder", self.path("live"), env=environment)
        self.assertEqual(len(self.records(self.path("live"))), 1)
        os.mkdir(self.path("out"))
        self.hostwait("run", "-q", "--output", self.path("out"), "--", MAKE_RECORDS, "as-shim", "folder", self.path("live"), env=environment)
        self.assertEqual(len(self.records(self.path("out"))), 1)

    def test_json_on_request(self):
        result = self.hostwait("run", "--format", "json", "--", MAKE_RECORDS, "as-shim")
        self.assertEqual(json.loads(result.stderr)["schema"], "hostwait.report/1")

    def test_a_pipe_that_is_closed_ends_nothing(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [TOOL, "run", "--", MAKE_RECORDS, "as-shim"], stderr=write, stdout=subprocess.DEVNULL, cwd=self.folder, env=self.environment
        )
        os.close(write)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(self.records()), 1)


if __name__ == "__main__":
    tool_support.main()
