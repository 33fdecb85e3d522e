# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""PyTorch operations that wait for the GPU, and some that do not. One function per operation: its
name is what a report's Python column should show."""

from common import each
from frameworks import torch_or_77

torch = torch_or_77()

import numpy as np

torch.manual_seed(1)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cuda.matmul.allow_tf32 = False
cuda = torch.device("cuda")
host = torch.randn(512, 512)
matrix = host.to(cuda)
vector = torch.arange(4096, device=cuda, dtype=torch.float32)
big = torch.randn(4 << 20)  # 16 MiB, pageable


def busy():
    """GPU work in front of the operation, so that a wait takes time."""
    work = torch.empty(256 << 20, dtype=torch.uint8, device=cuda)
    for value in range(40):
        work.fill_(value)


def loss_item():
    busy()
    return np.float32((matrix * matrix).mean().item())


def masked_indexing():
    busy()
    return matrix[matrix > 0.5].cpu().numpy()


def nonzero():
    busy()
    return torch.nonzero(vector > 100).cpu().numpy()


def to_cpu():
    busy()
    return matrix.cpu().numpy()


def pageable_non_blocking():
    busy()
    return big.to(cuda, non_blocking=True).sum(dtype=torch.float64).cpu().numpy()


def pinned_non_blocking():
    busy()
    pinned = host.pin_memory()
    return pinned.to(cuda, non_blocking=True).cpu().numpy()


def if_tensor():
    busy()
    return np.int32(1 if vector.sum() > 0 else 0)


def linalg_eigh():
    busy()
    values, _ = torch.linalg.eigh(matrix @ matrix.T)
    return values.cpu().numpy()


def linalg_inv():
    busy()
    return torch.linalg.inv(matrix + 30 * torch.eye(512, device=cuda)).cpu().numpy()


def linalg_cholesky():
    busy()
    return torch.linalg.cholesky(matrix @ matrix.T + torch.eye(512, device=cuda)).cpu().numpy()


class waits_in_backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        busy()
        return grad * grad.sum().item()


def autograd_thread():
    x = vector.clone().requires_grad_(True)
    waits_in_backward.apply(x).sum().backward()
    return x.grad.cpu().numpy()


def stream_synchronize():
    busy()
    torch.cuda.current_stream().synchronize()
    return np.int32(0)


def device_synchronize():
    busy()
    torch.cuda.synchronize()
    return np.int32(0)


def event_synchronize():
    event = torch.cuda.Event()
    busy()
    event.record()
    event.synchronize()
    return np.int32(0)


def add_without_wait():
    total = matrix
    for _ in range(10):
        total = total + matrix
    return total.cpu().numpy()


def empty_cache():
    block = torch.empty(64 << 20, dtype=torch.uint8, device=cuda)
    del block
    busy()
    torch.cuda.empty_cache()
    return np.int32(0)


if __name__ == "__main__":
    each({f.__name__: f for f in (
        loss_item, masked_indexing, nonzero, to_cpu, pageable_non_blocking, pinned_non_blocking,
        if_tensor, linalg_eigh, linalg_inv, linalg_cholesky, autograd_thread, stream_synchronize,
        device_synchronize, event_synchronize, add_without_wait, empty_cache)})
