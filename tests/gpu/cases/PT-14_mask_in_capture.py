# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# PT-14, capture, PyTorch: https://github.com/pytorch/pytorch/issues/78549
# Indexing with a mask inside torch.cuda.graph() waits for the capturing stream: the wait returns
# error 900 at once and the capture is lost. A wait that can only fail is no finding; the broken
# capture is one, with the line of the index expression and the line where the capture began. The
# same choice without a size that depends on data is captured.
#
# alone: yes
# expect captures: {"call": "cuStreamSynchronize", "mode": "global", "begun_at": "begin",
#                   "at": "here"}
# expect case: nothing
# expect control: nothing
from torch_case import settle, torch, values

x = values(1000)
zero = torch.zeros_like(x)
x[x > 0]
torch.where(x > 0, x, zero)
cold = True


def capture(body):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # here begin
        body()
    return graph


def case():
    try:
        capture(lambda: x[x > 0])  # here
    except RuntimeError as error:
        assert "captur" in str(error), error
    else:
        raise AssertionError("the capture survives a mask")


def control():
    graph = capture(lambda: torch.where(x > 0, x, zero))
    graph.replay()
    return graph
