# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-01, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/12461
# Indexing with a mask reads the number of hits back. One finding for the copy and the wait, at
# the Python line of the index expression, with the C++ function below it. The same choice
# without a size that depends on data (where) is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "above_ms": 5, "frame": "nonzero", "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch, values

x = values(1000)
zero = torch.zeros((), device=cuda)


def case():
    busy()
    return x[x > 0]  # here


def control():
    busy()
    return torch.where(x > 0, x, zero)
