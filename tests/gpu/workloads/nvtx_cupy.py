# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Waits inside CuPy's NVTX ranges, with PyTorch's copy of NVTX in the same process where there is
one; comments say what each finding should bear (tests/gpu/expected_lines.py)."""

from frameworks import cupy_or_77

cp = cupy_or_77()

from cupy.cuda import nvtx
from cupyx.profiler import time_range

try:
    import torch
except ImportError:
    torch = None

data = cp.ones(1 << 16)
data.sum().get()  # expect: async_copy|copy|stream_sync; range
nvtx.RangePush("train_step")
data.sum().get()  # expect: async_copy|copy|stream_sync; range train_step
nvtx.RangePush("forward")
cp.cuda.Device().synchronize()  # expect: device_sync; range train_step/forward
if torch is not None:
    with torch.cuda.nvtx.range("from_torch"):
        cp.cuda.Device().synchronize()  # expect: device_sync; range train_step/forward/from_torch
nvtx.RangePop()
nvtx.RangePop()
with time_range("solve"):
    cp.cuda.Device().synchronize()  # expect: device_sync; range solve
cp.cuda.Device().synchronize()  # expect: device_sync; range
print("done")
