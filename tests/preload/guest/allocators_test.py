# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Other preloads beside ours, before and behind: allocators and a heap profiler that interposes the
loader's functions, too."""

import glob
import os

from guest_support import SHIM, GuestCase, main, program

THREADS = program("guest_threads")
PROCESSES = program("guest_processes")
FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/heaptrack", "/usr/lib/*-linux-gnu/heaptrack")


def found(name):
    hits = [hit for folder in FOLDERS for hit in glob.glob(f"{folder}/{name}")]
    return sorted(hits)[0] if hits else None


class Preloads(GuestCase):
    def tried(self, name):
        other = found(name)
        if other is None:
            self.skipTest(f"no {name} here")
        environment = {**self.environment, "DUMP_HEAPTRACK_OUTPUT": self.path("heaptrack")}
        self.with_other(environment, other, THREADS, "destructors", counted=[11])
        self.with_other(environment, other, THREADS, "many", "320", counted=[320])
        self.with_other(environment, other, PROCESSES, "fork", counted=[1, 2])
        self.with_other(environment, other, PROCESSES, "end", "atexit", counted=[3])

    def with_other(self, environment, other, *words, counted):
        without = self.plain(*words, env={**environment, "LD_PRELOAD": other})
        for preload in (f"{other}:{SHIM}", f"{SHIM}:{other}"):
            ran = self.plain(*words, env={**environment, "LD_PRELOAD": preload, "HOSTWAIT_OPTIONS": f"output={self.folder}"})
            self.check(ran, without, counted)
        self.check(self.under_run(*words, env={**environment, "LD_PRELOAD": other}), without, counted)

    def check(self, ran, without, counted):
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (without.returncode, without.stdout, without.stderr))
        made = []
        for name in self.records():
            made.append(sum(f["calls"] for f in self.report(self.path(name))["findings"]))
            os.unlink(self.path(name))
        self.assertEqual(sorted(made), counted)

    def test_jemalloc(self):
        self.tried("libjemalloc.so.2")

    def test_mimalloc(self):
        self.tried("libmimalloc.so.2*")

    def test_heaptrack(self):
        self.tried("libheaptrack_preload.so*")


if __name__ == "__main__":
    main()
