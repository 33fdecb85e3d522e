# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-16, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/60691
# Three decisions of the CPU on GPU values in one function. The first carries the wait, the
# others find the stream empty: they are counted all the same, since they cost as soon as the
# first is gone.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "above_ms": 5, "frame": "clip", "at": "nan"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "below_ms": 5,
#               "frame": "clip", "at": "inf"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "below_ms": 5,
#               "frame": "clip", "at": "small"}
# expect control: nothing
from torch_case import busy, settle, torch, values

norm = values(64).norm()


def clip(n):
    if n.isnan():  # here nan
        raise RuntimeError("not a number")
    if n.isinf():  # here inf
        raise RuntimeError("infinite")
    return 1.0 if n < 1 else 2.0  # here small


def case():
    busy()
    return clip(norm)


def control():
    busy()
    return torch.where(norm.isfinite() & (norm < 1), 1.0, 2.0)
