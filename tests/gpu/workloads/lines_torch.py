# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""PyTorch as programs use it; comments say which line each wait should be blamed on
(tests/gpu/expected_lines.py)."""

import threading

from frameworks import torch_or_77

torch = torch_or_77()

from torch.utils.data import DataLoader, Dataset

cuda = torch.device("cuda")


def training_step(model, optimizer, inputs, targets):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(inputs), targets)  # setup
    loss.backward()  # setup
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # expect: stream_sync|async_copy
    optimizer.step()
    if not torch.isfinite(loss):  # expect: stream_sync|async_copy
        raise ValueError
    return loss.item()  # expect: stream_sync|async_copy


class Meter:
    """A method, a property, a comprehension, a lambda, a generator, a statement of several lines."""

    def __init__(self, values):
        self.values = values

    @property
    def total(self):
        return self.values.sum().item()  # expect: stream_sync|async_copy

    def each(self):
        return [value.item() for value in self.values[:3]]  # expect: stream_sync|async_copy; in Meter.each

    def positive(self):
        for index in torch.nonzero(self.values > 1):  # expect: stream_sync|async_copy
            yield index

    def spread(self):
        return float(
            (self.values - self.values.mean())
            .abs()
            .max()
            .item()  # expect: stream_sync|async_copy
        )


def masked(values):
    largest = max(values.unbind(), key=lambda v: v.tolist())  # expect: stream_sync|async_copy; in masked.<locals>.<lambda>
    return values[values > 2], largest  # expect: stream_sync|async_copy


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((1 << 16,), float(index))


def loader_loop():
    total = torch.zeros((), device=cuda)
    for batch in DataLoader(Rows(), batch_size=16, num_workers=2):
        total += batch.to(cuda).sum()  # expect: async_copy|copy|stream_sync
    for batch in DataLoader(Rows(), batch_size=16, num_workers=2, pin_memory=True):
        total += batch.to(cuda, non_blocking=True).sum()
    return total.cpu()  # expect: async_copy|copy


class ReadsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * grad.sum().item()  # expect: stream_sync|async_copy; in ReadsInBackward.backward; thread pt_autograd


def backward_in_python():
    x = torch.ones(4096, device=cuda, requires_grad=True)
    ReadsInBackward.apply(x).sum().backward()


def backward_without_python():
    """The gradient goes to the host on autograd's own thread, where no Python frame stands."""
    host = torch.ones(1 << 20, requires_grad=True)
    host.to(cuda).mul(2).sum().backward()  # expect: async_copy|copy|stream_sync


def graphs():
    static = torch.ones(1 << 16, device=cuda)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        static.mul(2).sum()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # expect: device_sync
        result = static.mul(2).sum()
    for _ in range(3):
        graph.replay()
    return result.item()  # expect: stream_sync|async_copy


def by_name():
    event = torch.cuda.Event()
    event.record()
    event.synchronize()  # expect: event_sync
    torch.cuda.current_stream().synchronize()  # expect: stream_sync
    torch.cuda.synchronize()  # expect: device_sync


def on_a_thread(values):
    values.sum().item()  # expect: stream_sync|async_copy


def main():
    torch.manual_seed(1)
    model = torch.nn.Linear(256, 1).to(cuda)  # setup
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, targets = torch.randn(64, 256, device=cuda), torch.randn(64, 1, device=cuda)  # setup
    for _ in range(3):
        training_step(model, optimizer, inputs, targets)
    meter = Meter(torch.arange(16, device=cuda, dtype=torch.float32))
    meter.total
    meter.each()
    list(meter.positive())  # setup
    meter.spread()
    masked(meter.values)
    loader_loop()
    backward_in_python()
    backward_without_python()
    graphs()
    by_name()
    thread = threading.Thread(target=on_a_thread, args=(meter.values,))
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
    print("done")
