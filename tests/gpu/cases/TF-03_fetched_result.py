# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# TF-03, unexpected_sync, convnet-benchmarks: https://github.com/soumith/convnet-benchmarks/pull/67
# Running a training target also fetched its result. The download of 4 MiB at each iteration is
# one finding with three calls; a step that returns nothing to the host is silent.
#
# expect case: {"kind": "async_copy", "call": "cuMemcpyDtoHAsync.*", "verdict": "legacy",
#               "calls": 3, "waited": 3, "above_ms": 2, "at": "here"}
# expect control: nothing
from torch_case import busy, settle, values

big = values(1024, 1024)


def case():
    for _ in range(3):
        busy(5)
        fetched = (big * 2).cpu().numpy()  # here
    return fetched


def control():
    for _ in range(3):
        busy(5)
        kept = big * 2
    return kept
