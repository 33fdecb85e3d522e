# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-24, unexpected_sync, torchrec: https://github.com/meta-pytorch/torchrec/pull/3318
# An optimizer makes a constant on the CPU and moves it with a blocking copy at each step: one
# new site with a call per step. Made on the GPU: silent. That a new site fails a job is held in
# the tests of `hostwait check`.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 3, "waited": 3,
#               "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch


def case():
    for _ in range(3):
        busy(5)
        made = torch.tensor(0.0).to("cuda")  # here
    return made


def control():
    for _ in range(3):
        busy(5)
        made = torch.zeros((), device=cuda)
    return made
