# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""CUDA graphs: graphs.py torch|cupy. Captured once, replayed, read back; a wait within the capture is
the program's own error with and without hostwait."""

import os
import sys

from common import each
from frameworks import cupy_or_77, torch_or_77


def torch_graphs():
    torch = torch_or_77()
    import numpy as np

    torch.manual_seed(5)
    weight = torch.randn(256, 256, device="cuda")
    x = torch.randn(256, 256, device="cuda")

    def captured():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                x @ weight
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.relu(x @ weight)
        made = []
        for i in range(5):
            x.fill_(i)
            graph.replay()
            made.append(y.sum(dtype=torch.float64).item())
        return np.array(made)

    def wait_in_a_capture():
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                (x @ weight).sum().item()
        except RuntimeError:
            torch.cuda.synchronize()
            return np.array([(x.sum()).item()])
        return np.array([-1.0])

    return {"captured": captured, "wait_in_a_capture": wait_in_a_capture}


def cupy_graphs():
    cp = cupy_or_77()
    x = cp.arange(1 << 16, dtype=cp.float32)
    y = cp.empty_like(x)
    stream = cp.cuda.Stream(non_blocking=True)

    def captured():
        with stream:
            cp.multiply(x, 2, out=y)  # compiled before the capture
            stream.synchronize()
            stream.begin_capture()
            cp.multiply(x, 2, out=y)
            cp.add(y, 1, out=y)
            graph = stream.end_capture()
            for _ in range(5):
                graph.launch(stream)
            stream.synchronize()
            return y.get()

    return {"captured": captured}


if __name__ == "__main__":
    each({"torch": torch_graphs, "cupy": cupy_graphs}[sys.argv[1]]())
    print(f"pid {os.getpid()}")
