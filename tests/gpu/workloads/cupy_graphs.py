# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""CuPy's stream captures in the three modes, and their replays. Prints one line per operation."""

from common import each
from frameworks import cupy_or_77

cp = cupy_or_77()


def replayed(mode):
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        given = cp.arange(4096, dtype=cp.float32)
        result = cp.empty_like(given)
        step = cp.ElementwiseKernel("float32 x", "float32 y", "y = x * 3 + 1", "step")
        step(given, result)  # compiled and loaded before the capture
        stream.synchronize()
        stream.begin_capture(mode)
        step(given, result)
        step(result, result)
        graph = stream.end_capture()
        made = []
        for factor in range(1, 4):
            given.fill(factor)
            graph.launch(stream)
            stream.synchronize()
            made.append(result.get(stream=stream))
    return made


def global_mode():
    return replayed(cp.cuda.runtime.streamCaptureModeGlobal)


def thread_local_mode():
    return replayed(cp.cuda.runtime.streamCaptureModeThreadLocal)


def relaxed_mode():
    return replayed(cp.cuda.runtime.streamCaptureModeRelaxed)


if __name__ == "__main__":
    each({f.__name__: f for f in (global_mode, thread_local_mode, relaxed_mode)})
