# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-31, unexpected_sync, autoware-ml: https://github.com/tier4/autoware-ml/pull/122
# Slicing with GPU scalars as bounds reads each bound back: 32 waits for 16 slices, at one source
# line. Bounds that are Python numbers: silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 32, "waited": [1,
#               32], "frame": "_local_scalar_dense", "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch, values

x = values(17, 8)
offsets = torch.arange(17, device=cuda)


def case():
    busy()
    for i in range(16):
        y = x[offsets[i] : offsets[i + 1]]  # here
    return y


def control():
    busy()
    for i in range(16):
        y = x[i : i + 1]
    return y
