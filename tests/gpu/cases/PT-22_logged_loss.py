# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-22, unexpected_sync, torchtune: https://github.com/meta-pytorch/torchtune/pull/522
# Logging the loss at each step waits at each step. Counts tell the forms apart: ten calls in ten
# steps at one line, one call at the other. A loss that is summed on the GPU is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 10, "waited": 10,
#               "frame": "_local_scalar_dense", "at": "every"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "frame": "_local_scalar_dense", "at": "tenth"}
# expect control: nothing
from torch_case import busy, settle, values

loss = values(64).mean()
STEPS = 10


def case():
    for step in range(STEPS):
        busy(5)
        every = loss.item()  # here every
        if step % 10 == 0:
            busy(5)
            tenth = loss.item()  # here tenth
    return every, tenth


def control():
    total = loss
    for _ in range(STEPS):
        busy(5)
        total = total + loss
    return total
