# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Captures in the three modes: producer and consumer in one capture, replayed with the right value;
a producer outside is refused and the capture survives; another thread's capture is not disturbed.
"""

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import proof

N = 256
MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def set_floats(gpu, pointer, value, stream):
    bits = ctypes.c_uint32.from_buffer(ctypes.c_float(value)).value
    gpu.call("cuMemsetD32Async", c_uint64(pointer), c_uint(bits), c_size_t(N), c_void_p(stream))


class fork:
    """Orders one stream behind another, as a program does by hand."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.event = c_void_p()
        gpu.call("cuEventCreate", byref(self.event), c_uint(2))

    def order(self, first, then):
        self.gpu.call("cuEventRecord", self.event, c_void_p(first))
        self.gpu.call("cuStreamWaitEvent", c_void_p(then), self.event, c_uint(0))


def begin(gpu, stream, mode):
    gpu.call("cuStreamBeginCapture_v2", c_void_p(stream), c_int(MODES[mode]))


def end(gpu, stream):
    graph = c_void_p()
    gpu.call("cuStreamEndCapture", c_void_p(stream), byref(graph))
    executable = c_void_p()
    gpu.call("cuGraphInstantiateWithFlags", byref(executable), graph, ctypes.c_ulonglong(0))
    return executable


def launch(gpu, executable, stream):
    gpu.call("cuGraphLaunch", executable, c_void_p(stream))
    gpu.synchronize(stream)


def same_capture(out, gpu, saxpy, mode):
    x, y, result = (proof.rows(gpu, 1, N) for _ in range(3))
    producer, consumer = gpu.stream(), gpu.stream()
    saxpy.saxpy(1.0, x.row(0), y.row(0), result.row(0), stream=consumer)  # events, module
    gpu.synchronize_all()
    join = fork(gpu)
    begin(gpu, consumer, mode)
    join.order(consumer, producer)
    set_floats(gpu, x.pointer, 3.0, producer)
    saxpy.saxpy(2.0, x.row(0, producer), y.row(0), result.row(0), stream=consumer)
    set_floats(gpu, x.pointer, -1.0, producer)  # must come after the consumer's kernel
    join.order(producer, consumer)
    executable = end(gpu, consumer)
    wrong = 0
    for _ in range(20):
        result.clear(0xFF)
        launch(gpu, executable, consumer)
        wrong += result.wrong_rows(lambda i: 6.0)
    out.result(f"capture.{mode}.same", wrong == 0, wrong=wrong, replays=20)


def boundary(out, gpu, saxpy, mode):
    x, y, result = (proof.rows(gpu, 1, N) for _ in range(3))
    producer, consumer = gpu.stream(), gpu.stream()
    set_floats(gpu, x.pointer, 5.0, producer)
    code = "none"
    begin(gpu, consumer, mode)
    set_floats(gpu, result.pointer, 7.0, consumer)
    try:
        saxpy.saxpy(1.0, x.row(0, producer), y.row(0), result.row(0), stream=consumer)
    except RuntimeError as problem:
        code = getattr(problem, "code", str(problem))
    executable = end(gpu, consumer)  # fails if the capture was invalidated
    launch(gpu, executable, consumer)
    wrong = result.wrong_rows(lambda i: 7.0)
    out.result(
        f"capture.{mode}.boundary",
        code == "capture_boundary" and wrong == 0,
        code=code,
        wrong=wrong,
    )


def other_thread(out, gpu, saxpy, mode):
    """This thread captures; another one acquires, launches and releases on streams outside."""
    x, y, result, own = (proof.rows(gpu, 1, N) for _ in range(4))
    producer, consumer, captured = gpu.stream(), gpu.stream(), gpu.stream()
    gpu.spin_kernel()
    problems = []

    def work():
        try:
            gpu.make_current()
            gpu.spin(producer, 0.002)
            set_floats(gpu, x.pointer, 4.0, producer)
            saxpy.saxpy(1.0, x.row(0, producer), y.row(0), result.row(0), stream=consumer)
            set_floats(gpu, x.pointer, -1.0, producer)
        except Exception as problem:  # reported by the main thread
            problems.append(f"{type(problem).__name__}: {problem}")

    begin(gpu, captured, mode)
    set_floats(gpu, own.pointer, 9.0, captured)
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    executable = end(gpu, captured)
    launch(gpu, executable, captured)
    wrong = own.wrong_rows(lambda i: 9.0) + result.wrong_rows(lambda i: 4.0)
    out.result(
        f"capture.{mode}.other_thread", not problems and wrong == 0, wrong=wrong, problems=problems
    )


def run(out, gpu):
    saxpy = proof.module("saxpy")
    for mode in MODES:
        for check in (same_capture, boundary, other_thread):
            out.attempt(f"capture.{mode}.{check.__name__}", check, out, gpu, saxpy, mode)


if __name__ == "__main__":
    proof.script(run)
