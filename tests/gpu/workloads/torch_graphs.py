# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""PyTorch's CUDA graphs: captures in the three modes, replays with new inputs, a captured training
step. Prints one line per operation, as the other workloads do."""

from common import each
from frameworks import torch_or_77

torch = torch_or_77()

import numpy as np

torch.manual_seed(5)
torch.use_deterministic_algorithms(True)
torch.backends.cuda.matmul.allow_tf32 = False


def replayed(mode):
    weight = torch.randn(256, 256, device="cuda")
    given = torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            (given @ weight).relu().sum(dim=1)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        result = (given @ weight).relu().sum(dim=1)
    made = []
    for factor in range(1, 4):
        given.copy_(torch.full_like(given, 0.25 * factor))
        graph.replay()
        made.append(result.cpu().numpy().copy())
    return made


def global_mode():
    return replayed("global")


def thread_local_mode():
    return replayed("thread_local")


def relaxed_mode():
    return replayed("relaxed")


def training_step():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given, wanted = torch.randn(32, 64, device="cuda"), torch.randn(32, 1, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(given), wanted).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = torch.nn.functional.mse_loss(model(given), wanted)
        loss.backward()
        optimizer.step()
    losses = []
    for _ in range(5):
        given.copy_(torch.randn(32, 64).cuda())
        graph.replay()
        losses.append(np.float32(loss.item()))
    return [np.array(losses), *(p.detach().cpu().numpy() for p in model.parameters())]


def callables():
    layer = torch.nn.Linear(64, 64).cuda()
    sample = torch.randn(16, 64, device="cuda")
    graphed = torch.cuda.make_graphed_callables(layer, (sample,))
    return graphed(torch.ones(16, 64, device="cuda")).detach().cpu().numpy()


if __name__ == "__main__":
    each({f.__name__: f for f in (global_mode, thread_local_mode, relaxed_mode, training_step,
                                  callables)})
