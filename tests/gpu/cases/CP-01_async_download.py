# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# CP-01, unexpected_sync, CuPy: https://github.com/cupy/cupy/issues/1692
# A sample claims an asynchronous download; the result is ordinary memory, so the copy waits.
# Into a pinned array the same call is silent until someone waits.
#
# expect case: {"kind": "async_copy", "call": "cuMemcpyDtoHAsync", "verdict": "stream", "calls":
#               1, "waited": 1, "above_ms": 5, "at": "here"}
# expect control: nothing
import cupyx

from cupy_case import busy, cp, settle

x = cp.arange(1 << 20, dtype=cp.float32)
stream = cp.cuda.Stream(non_blocking=True)
page_locked = cupyx.empty_pinned(x.shape, x.dtype)
settle()


def case():
    with stream:
        busy()
    return x.get(stream=stream, blocking=False)  # here


def control():
    with stream:
        busy()
    return x.get(stream=stream, out=page_locked, blocking=False)
