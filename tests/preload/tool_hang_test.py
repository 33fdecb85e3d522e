# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What hostwait top and report show of a program that hangs in the driver, alive and killed."""

import os
import signal
import time

import tool_support
import tool_top_test

HANGS = os.environ["HOSTWAIT_HANG_PROGRAM"]
SHIM = os.environ["HOSTWAIT_SHIM_DIR"]
SIM = os.environ["HOSTWAIT_SIM_DIR"]


class Hanging(tool_top_test.TopCase):
    def hanging(self):
        """A program under the real shim that waits for work which never ends."""
        env = dict(self.environment, LD_PRELOAD=os.path.join(SHIM, "libhostwait.so"), LD_LIBRARY_PATH=SIM, HOSTWAIT_OPTIONS=f"output={self.folder}")
        process, _ = self.start([HANGS], env)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for name in self.records():
                shown = self.hostwait("top", "--once", self.path(name)).stdout
                if "in cuMemFree_v2" in shown:
                    return process, self.path(name)
            time.sleep(0.05)
        self.fail("the program never hung in cuMemFree_v2")


class Hang(Hanging):
    def test_a_hang_shows_call_thread_and_stack(self):
        process, path = self.hanging()
        shown = self.hostwait("top", path).stdout
        self.assertRegex(shown, rf"in cuMemFree_v2 for [0-9.]+ m?s, thread {process.pid} ")
        self.assertRegex(shown, r"\n   stack cuMemFree < .*release_workspace \(hang_program.cpp:\d+\) < main \(hang_program.cpp:\d+\)")
        report = self.hostwait("report", path).stdout
        self.assertIn(f"thread {process.pid} ", report)
        self.assertRegex(report, r"is in cuMemFree_v2 for .*\n  at .*release_workspace")
        process.send_signal(signal.SIGKILL)
        process.wait()
        shown = self.hostwait("top", path).stdout
        self.assertIn("killed", shown)
        self.assertRegex(shown, rf"was in cuMemFree_v2, thread {process.pid} .*\n   stack .*release_workspace")


class Screen(tool_top_test.ScreenCase, Hanging):
    def test_a_hang_is_red_after_a_second(self):
        process, path = self.hanging()
        self.screen("top", "--interval", "0.2", str(process.pid))
        text = self.shows(rf"in cuMemFree_v2 for [1-9][0-9.]* s, thread {process.pid} ")
        self.assertRegex(text, r"stack cuMemFree.*release_workspace")
        self.shows("\x1b\\[31min cuMemFree_v2", colours=True)


if __name__ == "__main__":
    tool_support.main()
