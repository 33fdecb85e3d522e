# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# LL-05, unexpected_sync, SGLang: https://github.com/sgl-project/sglang/pull/20064
# Tensors built on the GPU from lists, and repetition by counts that only the GPU knows: two
# findings. A pinned upload of the list, with the size known on the host, is silent.
#
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": 1, "waited": 1,
#               "at": "list"}
# expect case: {"kind": "stream_sync|async_copy", "verdict": "legacy", "calls": [1, 4], "waited":
#               [1, 4], "at": "repeat"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch, values

x = values(4)
host_counts = [1, 2, 3, 4]
counts = torch.tensor(host_counts, device=cuda)


def case():
    busy()
    a = torch.tensor(host_counts, device=cuda)  # here list
    busy()
    b = torch.repeat_interleave(x, counts)  # here repeat
    return a, b


def control():
    busy()
    uploaded = torch.tensor(host_counts, pin_memory=True).to(cuda, non_blocking=True)
    return torch.repeat_interleave(x, uploaded, output_size=sum(host_counts))
