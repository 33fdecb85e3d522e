# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# CP-07, unexpected_sync, CuPy: https://github.com/cupy/cupy/pull/9497
# Sorting waited after each call through a C++ library of algorithms. In CuPy 14 it no longer
# does: the control. What still must read a size back, unique, is the finding, at the Python
# line.
#
# expect case: {"kind": "async_copy|copy|stream_sync", "verdict": "legacy", "calls": [1, 4],
#               "waited": [1, 4], "above_ms": 5, "at": "here"}
# expect control: nothing
from cupy_case import busy, cp, settle

x = (cp.arange(4096, dtype=cp.float32) * 7919) % 4099


def case():
    busy()
    return cp.unique(x)  # here


def control():
    busy()
    return cp.sort(x)
