# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Python's ways to make processes: findings in the process that made the call, nothing elsewhere."""

import os
import sys

from guest_support import GuestCase, main

PROGRAM = os.path.join(os.environ["HOSTWAIT_GUEST_SOURCES"], "multiprocess.py")


class Workers(GuestCase):
    def test_workers_of_multiprocessing(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                without = self.same(sys.executable, "-B", PROGRAM, method, records=[2, 1, 1], preload=False)
                self.assertEqual(without.stdout, "[0, 1, 4, 9]\n[0, 0, 0, 0]\n")


if __name__ == "__main__":
    main()
