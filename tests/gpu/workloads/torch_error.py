# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What a refused wait does to PyTorch: it raises there, goes on correctly after the guard, leaves
other threads alone, and reaches the autograd thread only through a process-wide frame."""

import sys
import threading

import hostwait_ctypes as hostwait
from frameworks import torch_or_77

torch = torch_or_77()

failures = 0


def expect(good, what):
    global failures
    failures += not good
    print(f"{'PASS' if good else 'FAIL'} {what}", flush=True)


def refused(operation):
    """None where the operation went through, else the exception."""
    try:
        operation()
    except RuntimeError as error:
        return error
    return None


class reads_in_backward(torch.autograd.Function):
    thread = None

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        reads_in_backward.thread = threading.get_native_id()
        return grad * grad.sum().item()


def main():
    if not hostwait.present():
        print("FAIL the preloaded library is not in this process")
        return 1
    x = torch.arange(1000, device="cuda", dtype=torch.float32)
    expected = float(sum(range(1000)))
    expect(x.sum().item() == expected, "item() before the guard")

    operations = {
        "item()": lambda: x.sum().item(),
        "cpu()": lambda: x.cpu(),
        "nonzero()": lambda: torch.nonzero(x > 5),
        "masked indexing": lambda: x[x > 5],
        "current_stream().synchronize()": lambda: torch.cuda.current_stream().synchronize(),
        "cuda.synchronize()": torch.cuda.synchronize,
        "pageable copy of 16 MiB": lambda: torch.ones(4 << 20).to("cuda", non_blocking=True),
        "linalg.inv": lambda: torch.linalg.inv(torch.eye(64, device="cuda")),
    }
    for name, operation in operations.items():
        before = hostwait.stats().refused
        with hostwait.guard(hostwait.ERROR, label="no waits"):
            error = refused(operation)
        last = hostwait.last_refused()
        expect(error is not None and hostwait.stats().refused > before,
               f"{name} raises ({type(error).__name__}: {str(error).splitlines()[0][:60]})"
               if error else f"{name} raises")
        expect(last is not None and last.kind & hostwait.SYNC != 0,
               f"{name}: the refused call is {last.call.decode() if last else 'unknown'}")
        expect(x.sum().item() == expected, f"{name}: correct afterwards")
        expect(refused(operation) is None, f"{name}: works afterwards")

    values, stop = [], threading.Event()

    def other():
        y = torch.ones(100, device="cuda")
        while not stop.is_set() or not values:
            values.append(refused(lambda: y.sum().item()) is None)

    thread = threading.Thread(target=other)
    with hostwait.guard(hostwait.ERROR):
        thread.start()
        mine = [refused(lambda: x.sum().item()) is not None for _ in range(50)]
        stop.set()
        thread.join()
    expect(all(mine), "every wait of the guarded thread is refused")
    expect(values and all(values), f"{len(values)} waits of another thread at that time are made")

    def backward():
        z = x.clone().requires_grad_(True)
        reads_in_backward.apply(z).sum().backward()
        return z.grad

    expected_gradient = torch.full((1000,), 1000.0)
    expect(bool((backward().cpu() == expected_gradient).all()), "backward without a guard")
    expect(reads_in_backward.thread != threading.get_native_id(), "backward ran on another thread")
    with hostwait.guard(hostwait.ERROR):
        error = refused(backward)
    expect(error is None, "a guard of this thread does not reach the autograd thread")
    with hostwait.guard(hostwait.ERROR, label="whole process", process=True):
        error = refused(backward)
    expect(error is not None, "a process-wide guard reaches the autograd thread")
    expect(bool((backward().cpu() == expected_gradient).all()), "backward is correct afterwards")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
