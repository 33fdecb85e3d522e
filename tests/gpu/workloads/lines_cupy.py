# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""CuPy as programs use it; comments say which line each wait should be blamed on
(tests/gpu/expected_lines.py)."""

from frameworks import cupy_or_77

cp = cupy_or_77()

import numpy as np


def read_back(matrix):
    first = matrix.get()  # expect: async_copy|copy|stream_sync
    second = cp.asnumpy(matrix * 2)  # expect: async_copy|copy|stream_sync
    return first + second


def scalar(matrix):
    largest = float(matrix.max())  # expect: async_copy|copy|stream_sync
    if matrix.sum() > largest:  # expect: async_copy|copy|stream_sync
        return largest
    return 0.0


def indices(matrix):
    rows, _ = cp.nonzero(matrix > 1)  # expect: async_copy|copy|stream_sync
    return rows, matrix[matrix > 1]  # expect: async_copy|copy|stream_sync


def by_name():
    cp.cuda.get_current_stream().synchronize()  # expect: stream_sync
    cp.cuda.Device().synchronize()  # expect: device_sync
    event = cp.cuda.Event()
    event.record()
    event.synchronize()  # expect: event_sync


def stacked(matrix):
    return [
        (lambda part: part.get())(part)  # expect: async_copy|copy|stream_sync; in stacked.<locals>.<lambda>
        for part in (matrix[:1], matrix[1:2])
    ]


if __name__ == "__main__":
    data = cp.asarray(np.random.default_rng(3).standard_normal((256, 256)))  # setup
    read_back(data)
    scalar(data)
    indices(data)
    by_name()
    stacked(data)
    print("done")
