# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""hostwait top: one frame in a pipe, the live screen in tmux."""

import os
import re
import shutil
import subprocess
import time

import tool_support
from tool_support import MAKE_RECORDS, TOOL


class TopCase(tool_support.Case):
    def start(self, words, env=None):
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env or self.environment)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def live(self):
        """A process that keeps a made record open."""
        return self.start([MAKE_RECORDS, "live", self.folder])


class Once(TopCase):
    def test_a_frame_in_a_pipe_is_plain(self):
        process, path = self.live()
        for what in (path, str(process.pid)):
            for words in (["top", "--once", what], ["top", what]):
                result = self.hostwait(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stderr, "")
                self.assertNotIn("\x1b", result.stdout)
                self.assertTrue(result.stdout.startswith(f"hostwait top: python3 ({process.pid}) running, "), result.stdout)
                self.assertIn("train.py:42 step", result.stdout)

    def test_sorting(self):
        _, path = self.live()
        order = lambda key: [line.split()[0] for line in self.hostwait("top", "--sort", key, path).stdout.splitlines() if line.startswith(" cuda")]
        self.assertEqual(order("waited"), ["cudaMemcpyAsync", "cudaFree"])
        self.assertEqual(order("latent"), ["cudaFree", "cudaMemcpyAsync"])
        self.refused(2, "top", "--sort", "name", path)

    def test_an_ended_process(self):
        process, path = self.live()
        process.communicate("")
        self.assertIn("ended without closing its record (killed, or _exit)", self.hostwait("top", path).stdout)

    def test_wrong_input(self):
        self.assertIn("No such file", self.refused(2, "top", self.path("none")))
        self.assertIn("writes no record", self.refused(2, "top", str(os.getpid())))
        with open(self.path("text"), "w") as file:
            file.write("hello")
        self.assertIn("not a record", self.refused(2, "top", self.path("text")))
        for interval in ("0", "nan"):
            self.assertIn("is no number from 0.1", self.refused(2, "top", "--interval", interval, self.path("text")))

    def test_a_full_disk(self):
        _, path = self.live()
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "top", path], stdout=full, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.assertEqual(done.returncode, 2)


class ScreenCase(TopCase):
    """Driven through tmux, as a person would."""

    def setUp(self):
        super().setUp()
        if shutil.which("tmux") is None:
            self.skipTest("tmux is not installed")
        self.socket = self.path("tmux")
        self.addCleanup(self.tmux, "kill-server", check=False)

    def tmux(self, *words, check=True):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], env=self.environment, capture_output=True, text=True, timeout=60, check=check).stdout

    def screen(self, *words, columns=120, lines=12):
        environment = [f"{key}={value}" for key, value in self.environment.items() if key in ("ASAN_OPTIONS", "NO_COLOR")]
        command = ["env", *environment, TOOL, *words]
        # The shell behind shows what is left of the terminal afterwards.
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), " ".join(command) + "; echo status $?; stty -a | grep -o ' -*echo '; exec sleep 600")

    def shows(self, pattern, colours=False):
        text = ""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            text = self.tmux("capture-pane", "-p", *(["-e"] if colours else []))
            if re.search(pattern, text, re.MULTILINE):
                return text
            time.sleep(0.05)
        self.fail(f"no {pattern!r} on the screen:\n{text}")


class Screen(ScreenCase):
    def test_keys_sort_pause_and_quit(self):
        process, path = self.live()
        self.screen("top", "--interval", "0.2", path)
        text = self.shows(r"^keys: w waited")
        self.assertTrue(text.startswith(f"hostwait top: python3 ({process.pid}) running, "), text)
        self.assertLess(text.index("cudaMemcpyAsync"), text.index("cudaFree"))
        self.tmux("send-keys", "l")
        text = self.shows("sorted by latent")
        self.assertLess(text.index("cudaFree"), text.index("cudaMemcpyAsync"))
        self.tmux("send-keys", "p")
        self.shows("sorted by latent; paused")
        self.tmux("send-keys", "t")
        self.shows("sorted by total; paused")
        self.tmux("send-keys", "p")
        self.shows("sorted by total$")
        self.tmux("send-keys", "q")
        text = self.shows("^status 0")
        self.assertNotIn("hostwait top", text)  # the screen as it was before
        self.shows("^ echo")

    def test_width_and_height_follow_the_terminal(self):
        _, path = self.live()
        self.screen("top", "--interval", "0.2", path, columns=60, lines=5)
        lines = self.shows("^keys: ").splitlines()
        self.assertEqual(len(lines), 5)
        self.assertTrue(all(len(line) <= 60 for line in lines))
        self.tmux("resize-window", "-x", "170", "-y", "20")
        self.shows("train.py:77 main < libtorch_cuda")

    def test_the_end_of_the_process_and_of_its_record_is_said(self):
        process, path = self.live()
        self.screen("top", "--interval", "0.2", path)
        self.shows("running")
        process.communicate("")
        self.shows("ended without closing its record")
        os.unlink(path)
        self.shows("the record is gone: this is its last state")
        self.tmux("send-keys", "C-c")
        self.shows("^status 0")

    def test_no_colour_where_none_is_wanted(self):
        _, path = self.live()
        self.environment["NO_COLOR"] = "1"
        self.screen("top", path)
        self.assertNotIn("\x1b", self.shows("^keys: ", colours=True))


if __name__ == "__main__":
    tool_support.main()
