# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Threads: many, small, cancelled, jumped out of, on foreign stacks; readers beside them."""

import json
import os
import subprocess

from guest_support import SHIM, GuestCase, main, program

THREADS = program("guest_threads")
JUMPS = program("guest_jumps")


class Threads(GuestCase):
    def test_a_hundred_thousand_short_threads(self):
        result = self.preloaded(THREADS, "many", "100000")
        self.assertEqual((result.returncode, result.stdout), (0, "failed 0\n"), result.stderr)
        self.assertEqual(self.calls(), [100000])
        (name,) = self.records()
        self.assertLess(os.path.getsize(self.path(name)), 256 * 1024)

    def test_the_smallest_stack(self):
        self.same(THREADS, "smallest_stack", records=[2])

    def test_a_handler_on_a_small_alternate_stack(self):
        self.same(THREADS, "alternate_stack", records=[2])

    def test_destructors_of_threads_and_exit_handlers(self):
        # 3 threads: the call, a thread_local's, a key's; at the end: atexit and a static's.
        self.same(THREADS, "destructors", records=[3 * 3 + 2])

    def test_a_host_function_on_a_thread_of_the_driver(self):
        without = self.same(THREADS, "host_function", records=[2])
        self.assertEqual(without.stdout, "inside 800\n")

    def test_reading_while_threads_come_and_go(self):
        environment = {**self.environment, "LD_PRELOAD": SHIM, "HOSTWAIT_OPTIONS": f"output={self.folder}"}
        process = subprocess.Popen([THREADS, "readers", "300"], env=environment, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        pid = process.stdout.readline().split()[1]
        before, looks = 0, 0
        while process.poll() is None:
            if not self.records():
                continue
            result = self.hostwait("report", "--format", "json", self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            now = sum(process["calls"] for process in json.loads(result.stdout)["processes"])
            self.assertGreaterEqual(now, before)
            before, looks = now, looks + 1
            changed = self.hostwait("set", pid, "level=log")
            self.assertTrue(changed.returncode == 0 or process.wait(60) == 0, changed.stderr)
        self.assertEqual(process.stdout.read(), "back 0\n")
        self.assertEqual(process.returncode, 0)
        self.assertGreater(looks, 0)
        self.assertEqual(self.calls(), [300 * 4 * 50])


class Jumps(GuestCase):
    def setUp(self):
        super().setUp()
        self.environment["LD_LIBRARY_PATH"] = os.environ["HOSTWAIT_GUEST_DRIVER"]

    def hanging(self):
        return [call for process in self.report()["processes"] for call in process["in_call"]]

    def played(self, scenario, counted, symbol="cuCtxSynchronize"):
        without = self.plain(JUMPS, scenario)
        self.assertEqual(without.returncode, 0, without.stderr)
        result = self.preloaded(JUMPS, scenario)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, without.stdout, without.stderr))
        self.assertEqual(self.calls(symbol), [counted])
        self.assertEqual(self.hanging(), [])

    def test_longjmp(self):
        self.played("longjmp", 15)

    def test_a_foreign_exception(self):
        self.played("exception", 15)

    def test_pthread_cancel(self):
        self.played("cancel", 5)

    def test_a_handler_within_a_call(self):
        self.played("handler", 1)
        self.assertEqual(self.calls("cuStreamSynchronize"), [1])

    def test_fibers_on_stacks_of_their_own(self):
        self.played("fibers", 4)
        self.assertEqual(self.calls("cuStreamSynchronize"), [1])
        # The walk ends where the fiber began: behind its function comes makecontext's frame at most.
        walks = [[frame.get("function", "") for frame in finding["native"]] for finding in self.report()["findings"]]
        of_fibers = [walk for walk in walks if any(name.endswith(("first_fiber", "second_fiber")) for name in walk)]
        self.assertEqual(len(of_fibers), 4, walks)
        for walk in of_fibers:
            (at,) = [i for i, name in enumerate(walk) if name.endswith("_fiber")]
            self.assertLessEqual(len(walk) - at, 2, walk)


if __name__ == "__main__":
    main()
