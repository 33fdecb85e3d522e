# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-33, unexpected_sync, transformers: https://github.com/huggingface/transformers/pull/43088
# Each generated token asks whether the mask is all ones. One site with as many calls as tokens,
# and the caller in its stack.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 4, "waited": 4,
#               "frame": "decode", "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch

mask = torch.ones(64, dtype=torch.bool, device=cuda)
TOKENS = 4


def decode(check):
    for _ in range(TOKENS):
        busy(5)
        if check and mask.all():  # here
            continue


def case():
    decode(True)


def control():
    decode(False)
