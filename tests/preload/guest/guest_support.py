# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the guest tests share: a program without hostwait, under a bare preload and under `run`; the
records that it left."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tool_support  # noqa: E402
from tool_support import MAKE_RECORDS, TOOL, main  # noqa: E402, F401

BIN = os.environ["HOSTWAIT_GUEST_BIN"]
LIB = os.environ["HOSTWAIT_LIBDIR"]
SHIM = os.path.join(LIB, "libhostwait.so") + ":" + os.path.join(LIB, "libhostwait_link.so")
# The head of a command that gets mounts of its own.
PRIVATE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]


def program(name):
    return os.path.join(BIN, name)


class GuestCase(tool_support.Case):
    """`self.folder` is the current folder of every program and holds the records."""

    def beside_the_build(self):
        """A folder that is still there where a test mounts something over /tmp."""
        self.folder = tempfile.mkdtemp(prefix="guest-", dir=os.getcwd())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def forget_records(self):
        for name in self.records():
            os.unlink(self.path(name))

    def plain(self, *words, **more):
        return self._run(words, more)

    def preloaded(self, *words, options="", **more):
        """A bare LD_PRELOAD; the record goes into the test's folder."""
        environment = dict(more.pop("env", self.environment))
        environment["LD_PRELOAD"] = SHIM
        environment["HOSTWAIT_OPTIONS"] = f"output={self.folder}" + (":" + options if options else "")
        return self._run(words, {**more, "env": environment})

    def under_run(self, *words, options=("-q",), **more):
        return self._run([TOOL, "run", *options, "--", *words], more)

    def _run(self, words, more):
        more.setdefault("cwd", self.folder)
        more.setdefault("env", self.environment)
        more.setdefault("timeout", 240)
        return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, **more)

    def report(self, *paths):
        done = self.hostwait("report", "--format", "json", *(paths or [self.folder]))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def calls(self, symbol="cuCtxSynchronize", folder=None):
        """[calls of the symbol] of each record of the folder, sorted. A first sight that met the lock is
        counted at "other"; the threads of these programs make no other call."""
        counts = []
        for name in self.records(folder):
            findings = self.report(os.path.join(folder or self.folder, name))["findings"]
            counts.append(sum(f["calls"] for f in findings if f["call"] in (symbol, "(other)")))
        return sorted(counts)

    def same(self, *words, records=None, preload=True, **more):
        """The program does with hostwait what it does without: status, signal, output."""
        self.forget_records()
        without = self.plain(*words, **more)
        result = self.under_run(*words, **more)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (without.returncode, without.stdout, without.stderr))
        if records is not None:
            self.assertEqual(self.calls(), sorted(records))
        self.forget_records()
        if preload:
            result = self.preloaded(*words, **more)
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (without.returncode, without.stdout, without.stderr))
            if records is not None:
                self.assertEqual(self.calls(), sorted(records))
        return without
