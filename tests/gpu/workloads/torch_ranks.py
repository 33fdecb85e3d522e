# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Two ranks of torchrun with gloo on one device: torch_ranks.py FOLDER [fail]. Each rank reduces CUDA
tensors by way of the host and writes a digest to FOLDER; with `fail` rank 1 ends with 3."""

import pathlib
import sys

from common import digest
from frameworks import skip, torch_or_77

torch = torch_or_77()

import numpy as np
import torch.distributed


def main():
    if not torch.distributed.is_gloo_available():
        skip("no gloo for PyTorch")
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
