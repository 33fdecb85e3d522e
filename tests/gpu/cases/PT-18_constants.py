# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-18, unexpected_sync, torchvision: https://github.com/pytorch/vision/pull/5515
# Three small constants built on the GPU at each forward pass: three sites with two calls each
# for two passes. Filled tensors are silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 2, "waited": 2,
#               "at": "first"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 2, "at":
#               "second"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 2, "at": "third"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch


def case():
    for _ in range(2):
        busy()
        a = torch.tensor(8, device=cuda)  # here first
        b = torch.tensor(16, device=cuda)  # here second
        c = torch.tensor(32, device=cuda)  # here third
    return a, b, c


def control():
    for _ in range(2):
        busy()
        made = [torch.full((), k, device=cuda) for k in (8, 16, 32)]
    return made
