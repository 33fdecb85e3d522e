# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Two GPUs: streams 1 and 2 mean a context's stream, so a consumer that names them in its own current
context waits for the wrong one. The exchange library must not (`ours.…`, `relied.…`); what CuPy and cuda.core
do is told. One JSON line for each finding; status 0, 1 or, with fewer than two GPUs, 77.
"""

import ctypes
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))

import proof  # noqa: E402

from hostwait import _cai_driver  # noqa: E402

SLOW = 0.03
N = 1024
PATTERN = 0x3F


def use_context(gpu):
    gpu.call("cuCtxSetCurrent", gpu.context)


def ready(gpu, stream):
    return gpu.library.cuStreamQuery(ctypes.c_void_p(stream)) == 0


class pair:
    """A producer on device 1, a consumer on device 0, which stays current."""

    def __init__(self, near, far):
        self.near, self.far = near, far
        use_context(far)
        self.side = far.stream()
        self.memory = far.allocate(4 * N)
        far.spin_kernel()
        use_context(near)
        self.consumer = near.stream()
        self.copy = near.allocate(4 * N)
        self.pinned = near.pinned(4)
        near.spin_kernel()

    def make_busy(self, stream):
        """The memory holds 0 for another SLOW seconds, then PATTERN; returns what is exported."""
        use_context(self.far)
        self.far.fill(self.memory, 0, 4 * N, self.side)
        self.far.synchronize_all()
        self.far.spin(stream, SLOW)
        self.far.fill(self.memory, PATTERN, 4 * N, stream)
        use_context(self.near)
        return proof.raw_array(self.memory, N, stream)

    def far_is_busy(self, stream):
        use_context(self.far)
        busy = not ready(self.far, stream)
        use_context(self.near)
        return busy

    def read(self):
        """What the consumer's stream sees: 0 is stale."""
        self.near.call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(self.copy), ctypes.c_uint64(self.memory),
                       ctypes.c_size_t(4 * N), ctypes.c_void_p(self.consumer))
        self.near.read(self.pinned, self.copy, 4, self.consumer)
        return self.pinned[0]

    def settle(self):
        for gpu in (self.far, self.near):
            use_context(gpu)
            gpu.synchronize_all()


def ours(out, both, glue, name, stream):
    item, policy = both.make_busy(stream), proof.read_policy()
    begin = time.perf_counter()
    use = glue.use("stream", both.consumer, (glue.view(item, policy),), policy)
    took = time.perf_counter() - begin
    busy, waits = both.far_is_busy(stream), not ready(both.near, both.consumer)
    value = both.read()
    # The way back: the producer's stream waits for the consumer's.
    both.near.spin(both.consumer, SLOW)
    use.release()
    back = both.far_is_busy(stream)
    context = ctypes.c_void_p()
    both.near.call("cuCtxGetCurrent", ctypes.byref(context))
    both.settle()
    out.result(f"two_devices.ours.{name}",
               busy and waits and value == PATTERN and back and took < SLOW / 2
               and context.value == both.near.context.value,
               producer_busy=busy, consumer_waits=waits, value_right=value == PATTERN, way_back=back,
               host_us=round(took * 1e6, 1), context_kept=context.value == both.near.context.value)


def ours_without_context(out, both, glue):
    """A thread without a context: the data's decides, and the thread has none afterwards."""
    item, found = both.make_busy(1), {}

    def work():
        use = glue.use("stream", both.consumer, (glue.view(item, proof.read_policy()),),
                       proof.read_policy())
        use.release()
        context = ctypes.c_void_p()
        both.near.call("cuCtxGetCurrent", ctypes.byref(context))
        found["context"] = context.value

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    waits = not ready(both.near, both.consumer)
    value = both.read()
    both.settle()
    out.result("two_devices.ours.no_context", waits and value == PATTERN and found.get("context", 1) is None,
               consumer_waits=waits, value_right=value == PATTERN)


def same_handle_elsewhere(out, both, glue):
    """Stream 1 of device 1 and stream 1 of device 0 are two streams: no elision."""
    item = both.make_busy(1)
    use = glue.use("stream", 1, (glue.view(item, proof.read_policy()),), proof.read_policy())
    waits = not ready(both.near, 1)
    use.release()
    both.settle()
    out.result("two_devices.ours.legacy_to_legacy", waits, consumer_waits=waits)


def cupy_consumer(out, both, stream):
    try:
        import cupy
    except Exception as problem:
        raise proof.unavailable(f"cupy: {problem}") from problem
    with cupy.cuda.Device(0):
        cupy.zeros(1)
        item = both.make_busy(stream)
        begin = time.perf_counter()
        try:
            cupy.asarray(item)
            answer = "waits for the producer"
        except Exception as problem:
            answer = f"{type(problem).__name__}: {problem}"[:200]
        took = time.perf_counter() - begin
        if both.far_is_busy(stream) and took < SLOW / 2:
            answer += " not: the dependency is missed" if answer.startswith("waits") else ""
    both.settle()
    out.result(f"two_devices.cupy.stream_{stream}", True, answer=answer, host_ms=round(took * 1e3, 3))


def cuda_core_consumer(out, both, stream):
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError:
        try:
            from cuda.core.experimental.utils import StridedMemoryView
        except ImportError as problem:
            raise proof.unavailable(f"cuda.core: {problem}") from problem
    make = getattr(StridedMemoryView, "from_any_interface", StridedMemoryView)
    item = both.make_busy(stream)
    try:
        make(item, stream_ptr=both.consumer)
        answer = "waits" if not ready(both.near, both.consumer) else "does not wait: the dependency is missed"
        if not both.far_is_busy(stream):
            answer = "inconclusive: the producer was not busy"
    except Exception as problem:
        answer = f"{type(problem).__name__}: {problem}"[:200]
    both.settle()
    out.result(f"two_devices.cuda_core.stream_{stream}", True, answer=answer)


def main():
    out, near = proof.start()
    count = ctypes.c_int()
    near.call("cuDeviceGetCount", ctypes.byref(count))
    if count.value < 2:
        print(f"skipped: {count.value} GPU here, two are needed")
        sys.exit(77)
    both = pair(near, _cai_driver.driver(1))
    glue = proof.module("hostwait_cai_glue")
    proof.read_policy()
    for stream in (both.side, 1, 2):  # events, code
        item = proof.raw_array(both.memory, N, stream)
        glue.use("stream", both.consumer, (glue.view(item),), None).release()
    both.settle()
    out.attempt("two_devices.ours.handle", ours, out, both, glue, "handle", both.side)
    out.attempt("two_devices.ours.legacy", ours, out, both, glue, "legacy", 1)
    out.attempt("two_devices.ours.per_thread", ours, out, both, glue, "per_thread", 2)
    out.attempt("two_devices.ours.legacy_to_legacy", same_handle_elsewhere, out, both, glue)
    out.attempt("two_devices.ours.no_context", ours_without_context, out, both, glue)
    for stream in (1, 2):
        for consumer in (cupy_consumer, cuda_core_consumer):
            out.attempt(f"two_devices.{consumer.__name__}.{stream}", consumer, out, both, stream)
    out.end()


if __name__ == "__main__":
    main()
