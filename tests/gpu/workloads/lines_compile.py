# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Waits in and behind functions that torch.compile has compiled; comments say which line each
should be blamed on (tests/gpu/expected_lines.py)."""

from frameworks import torch_or_77

torch = torch_or_77()


@torch.compile
def whole(x):
    return (torch.sin(x) * x).sum()


@torch.compile
def broken_in_two(x):
    scale = x.abs().max().item()  # expect: stream_sync|async_copy
    y = torch.cos(x) * scale
    return y.sum().item()  # expect: stream_sync|async_copy


def plain(x):
    return whole(x).item()  # expect: stream_sync|async_copy


if __name__ == "__main__":
    data = torch.linspace(0, 1, 1 << 16, device="cuda")
    whole(data)  # setup
    broken_in_two(data)  # setup
    for _ in range(3):
        plain(data)
        broken_in_two(data)  # setup
    print("done")
