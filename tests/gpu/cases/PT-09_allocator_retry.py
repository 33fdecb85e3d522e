# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-09, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/pull/19222
# With memory nearly full the caching allocator frees its cached segments before it retries: each
# cudaFree waits for every stream. The findings are at the Python line that asked for memory.
# With a limit on the process the allocator does not even try cudaMalloc first, so there is no
# failed call; and hostwait has no tag "allocator retry": the C++ frames say it. Four cached
# segments, four frees, of which the first waits; a request that fits a cached block is silent.
#
# expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "calls": 4,
#               "waited": [1, 4], "above_ms": 5, "frame": "release_block", "at": "retry"}
# expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "optional": true,
#               "at": "emptied"}
# expect control: nothing
from torch_case import busy, cuda, settle, torch

MIB = 1 << 20


def block(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device=cuda)


def case():
    torch.cuda.empty_cache()  # here emptied
    total = torch.cuda.get_device_properties(cuda).total_memory
    limit = torch.cuda.memory_reserved() + 500 * MIB
    torch.cuda.set_per_process_memory_fraction(limit / total)
    try:
        kept = [block(100) for _ in range(4)]
        del kept
        busy(30)
        return torch.empty(300 * MIB, dtype=torch.uint8, device=cuda)  # here retry
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def control():
    kept = block(100)
    del kept
    busy(30)
    return block(90)
