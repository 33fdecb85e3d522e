# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# CP-03, unexpected_sync, CuPy: https://github.com/cupy/cupy/issues/2414
# Checking a solver's error flag makes every call wait for it; leaving it out does not. Reported
# only under "raise", with CuPy's function in the stack.
#
# expect case: {"kind": "async_copy|copy|stream_sync", "verdict": "legacy", "calls": [1, 4],
#               "waited": [1, 4], "above_ms": 5, "frame": "solve", "at": "here"}
# expect control: nothing
import cupyx

from cupy_case import busy, cp, settle

matrix = cp.eye(32, dtype=cp.float32) * 3
right = cp.ones(32, dtype=cp.float32)


def solve(check):
    with cupyx.errstate(linalg=check):
        busy()
        return cp.linalg.solve(matrix, right)  # here


def case():
    return solve("raise")


def control():
    return solve("ignore")
