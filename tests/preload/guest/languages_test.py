# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Hosts in Go, Rust and Java, built by the compilers that are there; each is skipped where its
compiler is missing."""

import os
import shutil
import subprocess

from guest_support import GuestCase, main

SOURCES = os.environ["HOSTWAIT_GUEST_SOURCES"]
INCLUDE = os.environ["HOSTWAIT_INCLUDE"]
CC = os.environ["HOSTWAIT_CC"]


class Languages(GuestCase):
    def build(self, *command, **more):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=240, **more)
        self.assertEqual(done.returncode, 0, done.stderr)

    def source(self, name):
        return os.path.join(SOURCES, "languages", name)

    def needs(self, compiler):
        if shutil.which(compiler) is None:
            self.skipTest(f"no {compiler} here")
        # A wrapper that has no toolchain selected is none.
        probe = subprocess.run([compiler, "version" if compiler == "go" else "--version"], capture_output=True, text=True)
        if probe.returncode != 0:
            self.skipTest(f"{compiler} does not start: {probe.stderr.strip()[:200]}")

    def test_go(self):
        self.needs("go")
        folder = self.path("go")
        os.mkdir(folder)
        shutil.copy(self.source("host.go"), folder)
        shutil.copy(os.path.join(SOURCES, "guest.h"), folder)
        environment = {**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "1", "GOFLAGS": "", "CC": CC, "CGO_CFLAGS": f"-I{INCLUDE}",
                       "GOCACHE": os.environ.get("GOCACHE") or os.path.join(os.environ["HOSTWAIT_GUEST_BIN"], "go-cache")}
        self.build("go", "build", "-o", self.path("host"), os.path.join(folder, "host.go"), env=environment)
        without = self.same(self.path("host"), records=[64 * 20 + 1])
        self.assertEqual(without.stdout, "recovered true failed 0 calls 1280\n")

    def test_rust(self):
        self.needs("rustc")
        self.build("rustc", "-O", "-o", self.path("host"), self.source("host.rs"))
        self.assertEqual(self.same(self.path("host"), records=[8 * 50 + 1]).stdout, "failed 0 caught true\n")

    def test_java(self):
        self.needs("javac")
        home = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac"))))
        headers = os.path.join(home, "include")
        if not os.path.exists(os.path.join(headers, "jni.h")):
            self.skipTest(f"no jni.h in {headers}")
        self.build("javac", "-d", self.folder, self.source("Host.java"))
        self.build(CC, "-shared", "-fPIC", "-O1", f"-I{headers}", f"-I{headers}/linux", f"-I{SOURCES}", "-o",
                   self.path("libhost.so"), self.source("host_jni.c"), "-ldl")
        java = os.path.join(home, "bin", "java")
        without = self.same(java, "-Xint", "-cp", self.folder, "Host", self.path("libhost.so"), records=[20000], preload=False)
        self.assertEqual(without.stdout, "failed 0 caught true\n")
        self.same(java, "-Xcomp", "-XX:TieredStopAtLevel=1", "-cp", self.folder, "Host", self.path("libhost.so"), records=[20000],
                  preload=False)


if __name__ == "__main__":
    main()
