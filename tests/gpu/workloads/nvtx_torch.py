# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Waits inside PyTorch's NVTX ranges, and between profiler start and stop; comments say what each
finding should bear (tests/gpu/expected_lines.py)."""

from frameworks import torch_or_77

torch = torch_or_77()

from torch.cuda import nvtx

x = torch.ones(1 << 16, device="cuda")
x.sum().item()  # expect: stream_sync|async_copy; range
with nvtx.range("train_step"):
    x.sum().item()  # expect: stream_sync|async_copy; range train_step
    nvtx.range_push("forward")
    torch.cuda.synchronize()  # expect: device_sync; range train_step/forward
    nvtx.range_pop()
    torch.cuda.synchronize()  # expect: device_sync; range train_step
handle = nvtx.range_start("epoch")
x.max().item()  # expect: stream_sync|async_copy; range epoch
nvtx.range_end(handle)
torch.cuda.profiler.start()
torch.cuda.synchronize()  # expect: device_sync; range; id profiled
torch.cuda.profiler.stop()
torch.cuda.synchronize()  # expect: device_sync; range
print("done")
