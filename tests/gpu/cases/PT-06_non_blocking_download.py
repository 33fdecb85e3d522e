# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-06, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/39694
# A download asked to be non-blocking into an ordinary tensor: the copy itself waits, there is no
# synchronization to hook. The report's to("cpu", non_blocking=True) no longer waits: PyTorch makes
# its result in pinned memory. It is the control, beside the same copy into a pinned tensor.
#
# expect case: {"kind": "async_copy", "call": "cuMemcpyDtoHAsync", "verdict": "legacy", "calls":
#               1, "waited": 1, "above_ms": 5, "runtime": "cudaMemcpyAsync", "at":
#               "here"}
# expect control: nothing
from torch_case import busy, settle, torch, values

x = values(256, 1024)
ordinary = torch.empty(256, 1024)
page_locked = torch.empty(256, 1024, pin_memory=True)


def case():
    busy()
    return ordinary.copy_(x, non_blocking=True)  # here


def control():
    busy()
    made = x.to("cpu", non_blocking=True)
    assert made.is_pinned()
    return made, page_locked.copy_(x, non_blocking=True)
