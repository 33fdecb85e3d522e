# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the PyTorch cases share."""

from frameworks import torch_or_77

torch = torch_or_77()

cuda = torch.device("cuda")


def busy(milliseconds=20):
    """A spinning kernel on the current stream; never waits."""
    torch.cuda._sleep(int(milliseconds * 1_900_000))


def settle():
    """Waits for everything, outside the judged parts."""
    torch.cuda.synchronize()


def values(*sizes):
    """Float32 on the GPU, the same in each run."""
    count = 1
    for size in sizes:
        count *= size
    return (torch.arange(count, device=cuda, dtype=torch.float32) % 17 - 5).reshape(sizes)
