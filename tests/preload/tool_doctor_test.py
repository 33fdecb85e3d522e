# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""hostwait doctor with the true library on the simulated driver; each line once broken."""

import os
import shutil
import subprocess

import tool_support
from tool_support import MAKE_RECORDS, TOOL

LIBDIR = tool_support.STUB  # the folder of the true library here
STUB = os.environ["HOSTWAIT_STUB"]
SIM = os.environ["HOSTWAIT_SIM"]
ROUTES = ["dlsym", "dlvsym", "cuGetProcAddress", "cuGetProcAddress_v2", "runtime", "linked", "deepbind"]


class Doctor(tool_support.Case):
    def setUp(self):
        super().setUp()
        for name in ("LD_AUDIT", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "XDG_RUNTIME_DIR"):
            self.environment.pop(name, None)
        self.environment["LD_LIBRARY_PATH"] = SIM

    def doctor(self, status, **changes):
        result = self.hostwait("doctor", env={**self.environment, **changes})
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertEqual("FAIL " in result.stdout, status == 1, result.stdout)
        self.assertLessEqual(result.stdout.count("\n"), 24)
        return result.stdout

    def failures(self, **changes):
        return [line[5:] for line in self.doctor(1, **changes).splitlines() if line.startswith("FAIL")]

    def library_folder(self, *names):
        for name in names:
            shutil.copy(os.path.join(LIBDIR, name), self.folder)
        return self.folder

    def test_a_call_is_caught_on_each_route(self):
        screen = self.doctor(0)
        caught = next(line for line in screen.splitlines() if line.startswith("ok   routes"))
        tried = [route for route in ROUTES if f"{route}: not tried" not in screen]
        self.assertEqual(caught.split(None, 2)[2], ", ".join(tried) + ": a call was caught on each")
        for route in ("dlsym", "cuGetProcAddress", "cuGetProcAddress_v2", "runtime", "linked", "deepbind"):
            self.assertIn(route, tried)

    def test_it_leaves_no_record(self):
        os.mkdir(self.path("run"))
        self.doctor(0, XDG_RUNTIME_DIR=self.path("run"))
        self.assertEqual([name for _, _, names in os.walk(self.path("run")) for name in names], [])
        before = self.records("/dev/shm") if os.path.isdir("/dev/shm") else []
        self.doctor(0)
        after = self.records("/dev/shm") if os.path.isdir("/dev/shm") else []
        self.assertEqual([name for name in after if name.startswith("hostwait-hostwait-") and name not in before], [])

    def test_a_library_that_catches_nothing(self):
        failures = self.failures(HOSTWAIT_LIBDIR=STUB)
        routes = [line for line in failures if line.startswith("route ")]
        self.assertGreaterEqual(len(routes), 4)
        self.assertIn("a call made that way was not seen", routes[0])

    def test_without_the_link_library_that_route_alone_fails(self):
        folder = self.library_folder("libhostwait.so", "libhostwait_selftest.so")
        failures = self.failures(HOSTWAIT_LIBDIR=folder)
        self.assertEqual(len(failures), 1, failures)
        self.assertIn("linked: a call made that way was not seen; libhostwait_link.so is missing", failures[0])

    def test_without_the_helper_two_routes_are_not_tried(self):
        screen = self.doctor(0, HOSTWAIT_LIBDIR=self.library_folder("libhostwait.so", "libhostwait_link.so"))
        for route in ("linked", "deepbind"):
            self.assertIn(f"{route}: not tried: libhostwait_selftest.so is not installed", screen)

    def test_a_library_that_the_loader_refuses(self):
        with open(self.path("libhostwait.so"), "w") as file:
            file.write("no library\n")
        self.assertIn("the loader did not take", self.failures(HOSTWAIT_LIBDIR=self.folder)[0])

    def test_no_library(self):
        shutil.copy(TOOL, self.path("hostwait"))
        del self.environment["HOSTWAIT_LIBDIR"]
        done = subprocess.run([self.path("hostwait"), "doctor"], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAIL shim", done.stdout)

    def test_no_driver(self):
        if "ok   driver" in self.hostwait("doctor", env={**self.environment, "LD_LIBRARY_PATH": ""}).stdout:
            self.skipTest("this machine has a driver")
        failures = self.failures(LD_LIBRARY_PATH="")
        self.assertEqual(len(failures), 1, failures)
        self.assertIn("libcuda.so.1 cannot be loaded", failures[0])

    def test_a_driver_that_is_none(self):
        with open(self.path("libcuda.so.1"), "w") as file:
            file.write("no driver\n")
        self.assertIn("libcuda.so.1 cannot be loaded", self.failures(LD_LIBRARY_PATH=self.folder)[0])

    def test_wrong_options(self):
        self.assertIn("levle", self.failures(HOSTWAIT_OPTIONS="levle=log")[0])
        self.assertIn("routes=nolink: programs linked", self.doctor(0, HOSTWAIT_OPTIONS="routes=nolink"))

    def test_what_stands_in_the_way_is_named(self):
        shutil.copy(os.path.join(STUB, "libhostwait.so"), self.path("libother.so"))
        screen = self.doctor(
            0, LD_PRELOAD=self.path("libother.so"), CUDA_INJECTION64_PATH="/opt/cupti.so", NVTX_INJECTION64_PATH="/opt/nvtx.so"
        )
        self.assertIn(f"LD_PRELOAD={self.path('libother.so')}", screen)
        self.assertIn("CUDA_INJECTION64_PATH=/opt/cupti.so", screen)
        self.assertIn("NVTX_INJECTION64_PATH=/opt/nvtx.so", screen)

    def test_copies_of_the_driver_and_their_versions(self):
        shutil.copy(os.path.join(SIM, "libcuda.so.1"), self.path("libcuda.so.580.159"))
        os.symlink("libcuda.so.580.159", self.path("libcuda.so.1"))
        screen = self.doctor(0, LD_LIBRARY_PATH=f"{SIM}:{self.folder}")
        self.assertRegex(screen, r"note copies +[2-9] of libcuda: ")
        self.assertIn(self.path("libcuda.so.580.159") + " (580.159)", screen)

    def test_live_records_are_counted(self):
        os.mkdir(self.path("run"))
        made = subprocess.run(
            [MAKE_RECORDS, "as-shim", "folder", self.path("run")], env=self.environment, cwd=self.folder, capture_output=True
        )
        self.assertEqual(made.returncode, 0)
        screen = self.doctor(0, XDG_RUNTIME_DIR=self.path("run"))
        self.assertRegex(screen, r"note records +[1-9][0-9]* in live folders, \d+\.\d MiB")

    def test_no_live_folder_has_room(self):
        script = 'for d in /dev/shm /tmp; do mount -t tmpfs -o size=1m none $d || exit 77; done; exec "$0" doctor'
        copy = os.path.join(os.path.dirname(LIBDIR), "bin", "hostwait")
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, copy], env=self.environment, capture_output=True, text=True
        )
        if "unshare" in done.stderr or done.returncode == 77:
            self.skipTest("no mount namespace here: " + done.stderr.strip())
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("FAIL live folder", done.stdout)

    def test_limits_are_said(self):
        screen = self.doctor(0)
        self.assertIn("set-user-ID", screen)
        self.assertIn("not seen", screen)
        self.assertRegex(screen, r"live folder .* of \d+ MiB free")
        with open("/proc/self/status") as status:
            if "Seccomp:\t2" in status.read():
                self.assertIn("note seccomp", screen)


if __name__ == "__main__":
    tool_support.main()
