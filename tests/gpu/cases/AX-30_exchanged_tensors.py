# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# AX-30, unexpected_sync, Warp: https://github.com/NVIDIA/warp/issues/1046
# Passing new tensors to another library's kernels stalls. The finding stands at the construction
# of the tensor from a list, not at the exchange, which is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 3, "waited": 3,
#               "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch


def consume(tensor):
    """What a consumer of the CUDA Array Interface reads; a kernel of its own would follow."""
    return tensor.__cuda_array_interface__["data"][0]


ready = torch.ones(16, device=cuda)


def case():
    for _ in range(3):
        busy(5)
        made = torch.tensor([1.0, 2.0, 3.0], device=cuda)  # here
        address = consume(made)
    return address


def control():
    for _ in range(3):
        busy(5)
        address = consume(ready)
    return address
