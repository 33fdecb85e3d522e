# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# AX-24, unexpected_sync, dask.distributed: https://github.com/dask/distributed/pull/3638
# A transport waited for stream 0 at each message, also where it held no GPU data. One finding
# with the count of messages, nearly all of them latent. With the wait only for CUDA frames:
# silent.
#
# expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
#               "calls": 100, "waited": [1, 100], "latent": [0, 99], "above_ms": 5, "frame":
#               "send", "at": "here"}
# expect control: nothing
from cupy_case import busy, cp, settle

MESSAGES = 100


def send(frames, wait_always):
    if wait_always or any(hasattr(frame, "__cuda_array_interface__") for frame in frames):
        cp.cuda.Stream.null.synchronize()  # here
    return sum(len(frame) for frame in frames)


def messages(wait_always):
    busy()
    return [send([b"host only"], wait_always) for _ in range(MESSAGES)]


def case():
    return messages(True)


def control():
    return messages(False)
