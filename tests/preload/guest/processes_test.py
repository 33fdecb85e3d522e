# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Processes: every way to make one and to end one, with and without hostwait."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

from guest_support import PRIVATE, TOOL, GuestCase, main, program

PROCESSES = program("guest_processes")
THROWS = program("guest_throws")


def live_records():
    for folder in ("/dev/shm", os.environ.get("XDG_RUNTIME_DIR") or "/tmp", "/tmp"):
        yield from glob.glob(f"{folder}/hostwait-guest_process*.hwr")


def wait_for(path):
    for _ in range(1200):
        if os.path.exists(path):
            return True
        time.sleep(0.05)
    return False


class LiveCase(GuestCase):
    def run_id_of(self, path):
        """None for another user's record, or one that another test has taken away meanwhile."""
        done = self.hostwait("report", "--format", "json", path)
        return json.loads(done.stdout)["processes"][0]["run_id"] if done.returncode == 0 else None


class Children(LiveCase):
    def test_fork(self):
        self.assertIn("child 0x500", self.same(PROCESSES, "fork", records=[2, 1]).stdout)

    def test_raw_clone(self):
        self.assertIn("child 0x500", self.same(PROCESSES, "clone", records=[2, 1]).stdout)

    def test_vfork(self):
        without = self.same(PROCESSES, "vfork", records=[3, 1])
        self.assertIn("exec 0x500\nexit 0x600", without.stdout)

    def test_posix_spawn(self):
        self.assertIn("spawn 0x500", self.same(PROCESSES, "spawn", records=[2, 1]).stdout)

    def test_system(self):
        self.assertIn("system 0x500", self.same(PROCESSES, "system", records=[2, 1]).stdout)

    def test_forks_by_the_thousand(self):
        # Most of a loader's workers make no call: they must cost and leave nothing.
        self.same(PROCESSES, "forks", "2000", "100", records=[2] + [1] * 20, preload=False)

    def test_exec_with_and_without_its_environment(self):
        self.assertEqual(self.same(PROCESSES, "exec", "keep", records=[2, 1]).returncode, 5)
        # What was written before the exec stays; behind it nobody is preloaded.
        self.assertEqual(self.same(PROCESSES, "exec", "clear", records=[2]).returncode, 5)

    def test_grandchildren_that_outlive_run(self):
        go, done = self.path("go"), self.path("done")
        result = self.under_run(PROCESSES, "grandchild", go, done)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls(), [2])
        run_id = self.report()["processes"][0]["run_id"]
        open(go, "w").close()
        self.assertTrue(wait_for(done))
        # It made its first call after the end of the run: its record waits in the live folder.
        os.mkdir(self.path("late"))
        live = []
        for _ in range(200):
            live = [path for path in live_records() if self.run_id_of(path) == run_id]
            if live:
                break
            time.sleep(0.05)
        self.assertEqual(len(live), 1)
        shutil.move(live[0], self.path("late"))
        self.assertEqual(self.calls(folder=self.path("late")), [1])


class Daemons(LiveCase):
    def setUp(self):
        super().setUp()
        # With wrong options the record lies in a live folder: it is known by this, and taken away.
        self.environment["HOSTWAIT_RUN_ID"] = f"{os.getpid():032x}"
        self.addCleanup(self.forget_live_records)

    def forget_live_records(self):
        for path in live_records():
            if self.run_id_of(path) == self.environment["HOSTWAIT_RUN_ID"]:
                os.unlink(path)

    def test_our_lines_stay_out_of_a_data_file(self):
        # A wrong option is due one line on stderr at the first call.
        for scenario, more in (("daemon", {}), ("data_in_2", {"preexec_fn": lambda: os.close(2)})):
            for options in ("levle=log", "output=/nonexistent"):
                data = self.path(scenario)
                result = self.preloaded(PROCESSES, scenario, data, options=options, **more)
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(data) as file:
                    self.assertEqual(file.read(), "data\n", (scenario, options))
                os.unlink(data)

    def test_the_same_line_goes_to_an_ordinary_stderr(self):
        result = self.preloaded(PROCESSES, "one", options="levle=log")
        self.assertEqual(result.returncode, 5)
        self.assertIn("levle", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_a_daemon_under_run(self):
        data = self.path("data")
        result = self.under_run(PROCESSES, "daemon", data)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(data) as file:
            self.assertEqual(file.read(), "data\n")
        self.assertEqual(self.calls(), [1])


class Ends(GuestCase):
    def test_every_end_is_the_programs_own(self):
        for words, status in (
            (["_exit"], 7),
            (["quick_exit"], 8),
            (["atexit"], 11),
            (["abort"], -signal.SIGABRT),
            (["fault"], -signal.SIGSEGV),
            *((["raise", str(int(number))], -number) for number in (
                signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1,
                signal.SIGALRM, signal.SIGBUS, signal.SIGFPE, signal.SIGTRAP, signal.SIGXCPU, signal.SIGRTMIN)),
        ):
            with self.subTest(words):
                at_end = 1 if words[0] in ("quick_exit", "atexit") else 0
                # A bare preload changes no more than `run` does; three forms are enough of it.
                without = self.same(PROCESSES, "end", *words, records=[2 + at_end], preload=words[0] != "raise")
                self.assertEqual(without.returncode, status)

    def test_an_exception_that_nobody_catches(self):
        without = self.same(THROWS, records=[1])
        self.assertEqual(without.returncode, -signal.SIGABRT)
        self.assertIn("nobody catches this", without.stderr)

    def test_signals_leave_no_second_core(self):
        limit = "ulimit -c unlimited 2>/dev/null; exec"
        self.under_run("sh", "-c", f"{limit} '{PROCESSES}' end abort")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("core")], [])


# What is found without arguments must not depend on what other tests leave in the live folders: these
# run with folders of their own.
PRIVATE_SHELL = "mount -t tmpfs tmpfs /dev/shm && unset XDG_RUNTIME_DIR && "
if not any(path.startswith("/tmp/") for path in (TOOL, PROCESSES, os.getcwd() + "/")):
    PRIVATE_SHELL += "mount -t tmpfs tmpfs /tmp && "


# The report, once the process that wrote the record is gone.
ENDED = (f"n=0; while '{TOOL}' report > text; grep -q 'still runs' text && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; cat text; ")


def private_reason():
    done = subprocess.run([*PRIVATE, "sh", "-c", PRIVATE_SHELL + "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"no mounts of one's own here: {done.stderr.strip()}"


class Killed(GuestCase):
    def setUp(self):
        super().setUp()
        reason = private_reason()
        if reason is not None:
            self.skipTest(reason)
        self.beside_the_build()

    def private(self, script):
        return subprocess.run([*PRIVATE, "sh", "-c", PRIVATE_SHELL + script], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, cwd=self.folder, env=self.environment, timeout=120)

    def test_sigkill_of_run(self):
        done = self.path("done")
        result = self.private(
            f"'{TOOL}' run -q -- '{PROCESSES}' end kill_parent '{done}'; echo status $?; "
            f"n=0; while [ ! -e '{done}' ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; " + ENDED +
            f"'{TOOL}' collect . --from /dev/shm")
        self.assertIn("status 137\n", result.stdout)
        self.assertRegex(result.stdout, r"hostwait: \d findings in guest_processes")
        self.assertEqual(self.calls(), [3])

    def test_sigkill_of_run_and_program(self):
        result = self.private(
            f"setsid '{TOOL}' run -q -- '{PROCESSES}' end kill_group; echo status $?; " + ENDED +
            f"'{TOOL}' collect . --from /dev/shm")
        self.assertIn("status 137\n", result.stdout)
        self.assertRegex(result.stdout, r"hostwait: \d findings in guest_processes")
        self.assertIn("ended without closing its record", result.stdout)
        self.assertEqual(self.calls(), [2])

    def test_sigkill_of_the_program(self):
        result = self.private(f"'{TOOL}' run -- '{PROCESSES}' end raise 9; echo status $?; ls /dev/shm")
        self.assertIn("status 137\n", result.stdout)
        self.assertNotIn("hwr", result.stdout)  # it was moved here
        self.assertEqual(self.calls(), [2])


if __name__ == "__main__":
    main()
