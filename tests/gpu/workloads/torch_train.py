# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""A PyTorch training loop that logs its loss: torch_train.py [STEPS [ROUNDS]]. Prints a digest of all
losses, and the time of each round of STEPS steps. With the preloaded library and PAUSE=1, every
second round runs with recording paused: what the library costs, without two processes' noise. With
ALTERNATE=N besides, N more steps, each timed alone, recording or paused by the toss of a coin: a
machine that gets slower or faster hits both alike."""

import os
import random
import statistics
import sys
import time

import hostwait_ctypes as hostwait
from common import digest
from frameworks import torch_or_77

torch = torch_or_77()

import numpy as np


def train(model, optimizer, inputs, targets, steps, losses):
    for step in range(steps):
        batch = step % len(inputs)
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(inputs[batch]), targets[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


def alternate(model, optimizer, inputs, targets, steps):
    """Prints medians of the two kinds of steps and the 95 % interval of their ratio (bootstrap)."""
    coin = random.Random(7)
    times = ([], [])  # recording, paused
    for _ in range(steps):
        paused = coin.randrange(2)
        hostwait.table.set_paused(paused)
        start = time.perf_counter_ns()
        train(model, optimizer, inputs, targets, 1, [])  # ends with loss.item(), which waits
        times[paused].append(time.perf_counter_ns() - start)
    hostwait.table.set_paused(0)
    draw = np.random.default_rng(7)
    on, off = (np.array(each, dtype=float) for each in times)
    ratios = sorted(np.median(draw.choice(on, len(on))) / np.median(draw.choice(off, len(off)))
                    for _ in range(1000))
    print(f"alternating {statistics.median(on):.0f} {statistics.median(off):.0f} "
          f"{ratios[25]:.5f} {ratios[974]:.5f} {steps}")


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pause = os.environ.get("PAUSE") == "1" and hostwait.present()
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    inputs = torch.randn(8, 256, 512, device="cuda")
    targets = torch.randn(8, 256, 1, device="cuda")
    losses = []
    train(model, optimizer, inputs, targets, 50, losses)  # warm-up
    for number in range(rounds):
        if pause:
            hostwait.table.set_paused(number % 2)
        torch.cuda.synchronize()
        start = time.perf_counter()
        train(model, optimizer, inputs, targets, steps, losses)
        torch.cuda.synchronize()
        print(f"seconds {time.perf_counter() - start:.6f} {'paused' if pause and number % 2 else ''}")
    print(f"losses {digest(np.array(losses))}")
    if pause and "ALTERNATE" in os.environ:
        alternate(model, optimizer, inputs, targets, int(os.environ["ALTERNATE"]))


if __name__ == "__main__":
    main()
