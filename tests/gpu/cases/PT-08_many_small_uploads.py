# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-08, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/135794
# Every plain tensor.cuda() ends in a wait for the stream. One finding with count 100, not 100 of
# them; the first one waits for the kernel, the others are short. Pinned and non-blocking:
# silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 100, "waited":
#               [1, 100], "above_ms": 5, "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch

small = [torch.full((8,), float(i)) for i in range(100)]
page_locked = [t.pin_memory() for t in small]


def case():
    busy()
    return [t.cuda() for t in small]  # here


def control():
    busy()
    return [t.to(cuda, non_blocking=True) for t in page_locked]
