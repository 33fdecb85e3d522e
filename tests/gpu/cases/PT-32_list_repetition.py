# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-32, unexpected_sync, TransformerEngine: https://github.com/NVIDIA/TransformerEngine/pull/3268
# A padding mask is made with list repetition by a GPU element: one wait per sequence, count 8
# for a batch of 8, at the line of the list expression. With lengths on the host: silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 8, "waited": [1,
#               8], "frame": "_local_scalar_dense", "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch

lengths = torch.arange(8, device=cuda)
on_host = list(range(8))


def case():
    busy()
    return [[False] * lengths[i] for i in range(8)]  # here


def control():
    busy()
    return [[False] * on_host[i] for i in range(8)]
