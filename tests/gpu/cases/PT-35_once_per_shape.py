# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-35, unexpected_sync, flash-linear-attention:
# https://github.com/fla-org/flash-linear-attention/issues/752
# A wait that happens once per new input shape, later calls are cached: three calls in a hundred.
# Whether it matters is a question of counts; once warm, it is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 3, "waited": [1,
#               3], "above_ms": 5, "frame": "indices", "at": "here"}
# expect control: nothing
import functools

from torch_case import busy, cuda, settle, torch

lengths = {n: torch.arange(n, device=cuda) for n in (2, 3, 4)}


@functools.lru_cache(maxsize=None)
def indices(n):
    return lengths[n].tolist()  # here


def hundred_calls():
    for i in range(100):
        indices(2 + i % 3)


def case():
    indices.cache_clear()
    busy()
    hundred_calls()


def control():
    busy()
    hundred_calls()
