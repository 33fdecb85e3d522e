# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""A DataLoader with two workers and pinned memory: torch_loader.py fork|spawn. The workers never call
CUDA; the loss is read once a batch, in the process that this prints."""

import os
import sys

from common import digest
from frameworks import module_or_77, torch_or_77

torch = module_or_77("torch")

import numpy as np


class numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(64, generator=generator)


def main():
    torch_or_77()  # here: spawned workers import this file, and are to leave the GPU alone
    torch.manual_seed(5)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = torch.nn.Linear(64, 64).cuda()  # before the workers are forked
    losses = []
    loader = torch.utils.data.DataLoader(numbers(), batch_size=16, num_workers=2, pin_memory=True,
                                         multiprocessing_context=sys.argv[1])
    for batch in loader:
        losses.append((model(batch.cuda(non_blocking=True)) ** 2).mean().item())
    print(f"losses\t{digest(np.array(losses))}")
    print(f"batches\t{len(losses)}")
    print(f"pid {os.getpid()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
