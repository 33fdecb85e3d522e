# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Two ranks of torchrun with gloo on one device: torch_ranks.py FOLDER [fail]. Each rank reduces CUDA
tensors by way of the host and writes a digest to FOLDER; with `fail` rank 1 ends with 3."""

import os
import pathlib
import sys

try:
    import numpy as np
    import torch
    import torch.distributed
except ImportError as missing:
    print(missing)
    sys.exit(77)

from common import digest


def main():
    if not torch.cuda.is_available() or not torch.distributed.is_gloo_available():
        print("no CUDA device or no gloo for PyTorch")
        return 77
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(rank)
    gradient = torch.randn(4096, device="cuda")
    losses = []
    for _ in range(10):
        torch.distributed.all_reduce(gradient)
        gradient /= 2
        losses.append(gradient.sum().item())
    torch.distributed.barrier()
    pathlib.Path(sys.argv[1], f"rank{rank}").write_text(digest(np.array(losses)))
    torch.distributed.destroy_process_group()
    return 3 if rank == 1 and "fail" in sys.argv[2:] else 0


if __name__ == "__main__":
    sys.exit(main())
