# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-14, capture, PyTorch: https://github.com/pytorch/pytorch/issues/78549
# Indexing with a mask inside torch.cuda.graph() waits for the capturing stream: the wait returns
# error 900 at once and the capture is lost. A wait that can only fail is no finding; the broken
# capture is told, with the line of the index expression and the line where the capture began. What
# torch.cuda.graph() does before it begins is found at its line: it waits for the device once and
# empties PyTorch's caches. The control captures the same choice without a size that depends on
# data, by capture_begin(), which does none of this.
#
# alone: yes
# expect captures: {"call": "cuStreamSynchronize", "mode": "global", "begun_at": "begin",
#                   "at": "here", "times": 1}
# expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context", "calls": 1,
#               "frame": "__enter__", "at": "begin"}
# expect case: {"kind": "free|host_free", "verdict": "context", "frame": "__enter__", "optional":
#               true, "at": "begin"}
# expect control: nothing
from torch_case import settle, torch, values

x = values(1000)
zero = torch.zeros_like(x)
x[x > 0]
torch.where(x > 0, x, zero)
side = torch.cuda.Stream()
cold = True


def case():
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):  # here begin
            x[x > 0]  # here
    except RuntimeError as error:
        assert "captur" in str(error), error
    else:
        raise AssertionError("the capture survives a mask")


def control():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        graph.capture_begin()
        torch.where(x > 0, x, zero)
        graph.capture_end()
    graph.replay()
    return graph
