# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""torch.compile with its default backend, which starts compilers in processes of its own."""

import os
import sys
import tempfile

# Nothing from an earlier run: the compilers are to run.
caches = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(caches.name, "inductor")
os.environ["TRITON_CACHE_DIR"] = os.path.join(caches.name, "triton")

from common import digest
from frameworks import torch_or_77

torch = torch_or_77()

import numpy as np


def loss_of(x, weight):
    return torch.nn.functional.gelu(x @ weight).square().mean()


def main():
    torch.manual_seed(5)
    x = torch.randn(256, 256, device="cuda")
    weight = torch.randn(256, 256, device="cuda", requires_grad=True)
    try:
        compiled = torch.compile(loss_of)
        compiled(x, weight).backward()
    except Exception as error:  # noqa: BLE001: no triton, no compiler: nothing to prove here
        print(f"torch.compile does not work here: {type(error).__name__}: {str(error)[:200]}")
        return 77
    losses = []
    for _ in range(20):
        weight.grad = None
        loss = compiled(x, weight)
        loss.backward()
        losses.append(loss.item())
    print(f"losses\t{digest(np.array(losses), weight.grad.cpu().numpy())}")
    print(f"pid {os.getpid()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
