# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Programs that no preload reaches: linked statically, with musl, for 32 bits. As children of a run
they do what they do without it; as its program the reason is said."""

import os
import subprocess

import tool_support

PROGRAMS = {kind: os.environ.get("HOSTWAIT_FOREIGN_" + kind.upper(), "") for kind in ("static", "musl", "bits32")}
REASONS = {
    "static": "is linked statically: LD_PRELOAD does not reach it",
    "musl": "is linked with musl: CUDA and hostwait need glibc",
    "bits32": "is a 32-bit program: CUDA and hostwait are 64-bit",
}


class Foreign(tool_support.Case):
    def program(self, kind):
        if not PROGRAMS[kind]:
            self.skipTest(f"no compiler for {kind} here")
        return PROGRAMS[kind]

    def same_with_and_without(self, kind):
        script = f"'{self.program(kind)}'; echo status $?"
        bare = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=self.environment)
        self.assertEqual(bare.stdout, "left alone\nstatus 3\n")
        self.assertEqual(bare.stderr, "")
        result = self.hostwait("run", "-q", "--", "sh", "-c", script)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, bare.stdout, ""))

    def reason_is_said(self, kind):
        result = self.hostwait("run", "--", self.program(kind))
        self.assertEqual(result.returncode, 3)
        self.assertIn(REASONS[kind], result.stderr)

    def test_static_child(self):
        self.same_with_and_without("static")

    def test_musl_child(self):
        self.same_with_and_without("musl")

    def test_32_bit_child(self):
        self.same_with_and_without("bits32")

    def test_static_program(self):
        self.reason_is_said("static")

    def test_musl_program(self):
        self.reason_is_said("musl")

    def test_32_bit_program(self):
        self.reason_is_said("bits32")


if __name__ == "__main__":
    tool_support.main()
