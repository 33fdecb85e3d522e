# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Hosts built with a sanitizer, hostwait without: no report where there is no mistake, the same
report where there is one, and our findings right in both."""

import os
import re
import subprocess

from guest_support import SHIM, GuestCase, main

SOURCES = os.environ["HOSTWAIT_GUEST_SOURCES"]
INCLUDE = os.environ["HOSTWAIT_INCLUDE"]
CXX = os.environ["HOSTWAIT_CXX"]


class Sanitizers(GuestCase):
    def built(self, kind, *more):
        host = self.path(f"host-{kind}")
        done = subprocess.run([CXX, "-std=c++20", "-O1", "-g", f"-fsanitize={kind}", *more, f"-I{SOURCES}", f"-I{INCLUDE}", "-o", host,
                               os.path.join(SOURCES, "sanitized.cpp"), "-ldl", "-lpthread"], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"{CXX} -fsanitize={kind} does not link: {done.stderr.strip()[-200:]}")
        # Thread sanitizers do not start under every kernel's layout of memory.
        if self.plain(host).returncode != 0:
            self.skipTest(f"a program with -fsanitize={kind} does not run here: {self.plain(host).stderr.strip()[-200:]}")
        return host

    def tried(self, kind, title, *more):
        host = self.built(kind, *more)
        # Silent, and every call counted.
        self.same(host, records=[401], preload=False)
        # The mistake is found, with the same status and under the same title.
        without = self.plain(host, kind)
        self.assertNotEqual(without.returncode, 0)
        result = self.under_run(host, kind)
        self.assertEqual((result.returncode, result.stdout), (without.returncode, without.stdout))
        self.assertRegex(result.stderr, title)
        # Which of two racing lines is met first is chance.
        summary = r"SUMMARY: \w+: [\w-]+(?: [\w-]+)* "
        self.assertEqual(re.findall(summary, result.stderr), re.findall(summary, without.stderr))
        self.assertEqual(self.calls(), [401])

    def test_address(self):
        self.tried("address", "heap-use-after-free")

    def test_address_in_a_child_of_an_ordinary_program(self):
        host = self.built("address")
        self.same("sh", "-c", f"'{host}'; exit $?", records=[401], preload=False)

    def test_address_with_its_runtime_preloaded_first(self):
        host = self.built("address")
        done = subprocess.run([CXX, "-print-file-name=libasan.so"], capture_output=True, text=True)
        runtime = os.path.realpath(done.stdout.strip())
        if not os.path.isabs(done.stdout.strip()) or not os.path.exists(runtime):
            self.skipTest("this compiler has no libasan.so")
        self.same(host, records=[401], preload=False, env={**self.environment, "LD_PRELOAD": runtime})
        environment = {**self.environment, "LD_PRELOAD": f"{runtime}:{SHIM}", "HOSTWAIT_OPTIONS": f"output={self.folder}"}
        result = self.plain(host, env=environment)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "caught\n", ""))
        self.assertEqual(self.calls(), [401])

    def test_thread(self):
        self.tried("thread", "data race")

    def test_undefined(self):
        self.tried("undefined", "signed integer overflow", "-fno-sanitize-recover=all")


if __name__ == "__main__":
    main()
