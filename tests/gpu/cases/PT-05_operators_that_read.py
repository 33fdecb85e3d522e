# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-05, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/108968
# A list of operators that wait without need. Each is its own finding at its own Python line,
# although the C++ function at the end is the same. normal() of two tensors reads the smallest
# deviation twice, before and after it makes its result: the second wait is for its own short
# kernels only. In PyTorch 2.11 one-sample multinomial no longer waits (measured): it is the control.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": [1, 4], "waited":
#               [1, 4], "at": "repeat"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "at": "index"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 2, "waited":
#               [1, 2], "above_ms": 5, "at": "normal"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch, values

x = values(64)
one = torch.ones((), device=cuda)
index = torch.tensor(3, device=cuda)
counts = torch.full((64,), 2, device=cuda)
weights = torch.rand(64, device=cuda)


def case():
    busy()
    a = torch.repeat_interleave(x, counts)  # here repeat
    busy()
    b = x[index]  # here index
    busy()
    c = torch.normal(x, one)  # here normal
    return a, b, c


def control():
    busy()
    return torch.multinomial(weights, 1)
