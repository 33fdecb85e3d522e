# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# LL-12, unexpected_sync, torchtitan: https://github.com/pytorch/torchtitan/pull/3274
# Expert routing repeats by counts of the GPU: at least one wait per call, eight calls. With the
# output size given there is none.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": [8, 32],
#               "waited": [8, 32], "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch, values

tokens = values(64, 8)
counts = torch.full((64,), 2, device=cuda)


def case():
    for _ in range(8):
        busy(5)
        routed = torch.repeat_interleave(tokens, counts, dim=0)  # here
    return routed


def control():
    for _ in range(8):
        busy(5)
        routed = torch.repeat_interleave(tokens, counts, dim=0, output_size=128)
    return routed
