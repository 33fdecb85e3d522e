# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-15, unexpected_sync, accelerate: https://github.com/huggingface/accelerate/issues/1714
# Reading the loss scale before and after each step makes the CPU wait twice. Two findings at two
# user lines, three calls each for three steps. Scaling on the GPU is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 3, "frame":
#               "_local_scalar_dense", "at": "before"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 3, "waited": 3,
#               "frame": "_local_scalar_dense", "at": "after"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch

scaler = torch.amp.GradScaler("cuda")
loss = torch.ones((), device=cuda)
scaler.scale(loss)


def case():
    for _ in range(3):
        before = scaler.get_scale()  # here before
        busy()
        after = scaler.get_scale()  # here after
    return before, after


def control():
    for _ in range(3):
        busy()
        scaled = scaler.scale(loss)
    return scaled
