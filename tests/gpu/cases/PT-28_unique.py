# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-28, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/pull/57323
# unique() waited several times in one operator. All its waits stand at the one Python line, so
# their number shows: PyTorch 2.11 still reads the count back (measured: one copy and one wait).
# Sorting alone is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": [1, 2], "waited":
#               [1, 2], "at": "here"}
# expect control: nothing
from torch_case import busy, settle, torch, values

x = values(4096)


def case():
    busy()
    return torch.unique(x)  # here


def control():
    busy()
    return torch.sort(x)
