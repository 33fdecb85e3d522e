# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-03, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/120996
# A scalar tensor made from a Python number is uploaded from ordinary memory and waited for; a
# filled one of the same value is a kernel. The upload of four bytes alone would not stop the
# host (measured): the wait that PyTorch puts behind it is the finding.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "above_ms": 5, "at": "here"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch


def case():
    busy()
    return torch.tensor(3.14, device="cuda")  # here


def control():
    busy()
    return torch.full((), 3.14, device=cuda)
