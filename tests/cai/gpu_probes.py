# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What other libraries really do at an exchange, asked of a GPU: one JSON line for each finding. Statements
that the library's default chain is built on (`relied.…`) make the status 1 when they do not hold, or when
the producer was not busy, so that nothing was shown ("inconclusive").

gpu_probes.py [PROBE…]: probe functions by name, of all below.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))

import proof  # noqa: E402
from frameworks import framework_of  # noqa: E402

SLOW = 0.03
N = 1024
results = None  # the proof that counts failures


def answer(name, value, unit="answer"):
    print(json.dumps({"name": name, "value": value, "unit": unit, "n": 1}), flush=True)


def relied(name, holds, conclusive=True):
    text = ("holds" if holds else "does not hold") if conclusive else "inconclusive"
    answer(f"relied.{name}", text)
    results.failed += text != "holds"


def ready(gpu, stream):
    return gpu.library.cuStreamQuery(ctypes.c_void_p(stream)) == 0


def order(gpu, first, then):
    event = ctypes.c_void_p()
    gpu.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(2))
    gpu.call("cuEventRecord", event, ctypes.c_void_p(first))
    gpu.call("cuStreamWaitEvent", ctypes.c_void_p(then), event, ctypes.c_uint(0))
    gpu.call("cuEventDestroy_v2", event)


def drop(capsule):
    del capsule  # unused: its destructor runs the deleter


def milliseconds(function):
    begin = time.perf_counter()
    function()
    return round((time.perf_counter() - begin) * 1e3, 3)


def slow_array(gpu, framework, stream=None):
    """An array that will be ready in SLOW seconds."""
    if framework.name == "jax":
        return framework.produce(N, 1.0, SLOW)
    item = framework.array(N, stream)
    gpu.synchronize_all()
    gpu.spin(framework.handle(stream), SLOW)
    framework.fill(item, 1.0, stream)
    return item


def pending(gpu, framework, item, stream):
    """Is the array still being made? What is asked about it shows nothing otherwise."""
    if framework.name == "jax":
        return not item.is_ready()
    return not ready(gpu, framework.handle(stream))


def dlpack_orders(gpu, name, framework):
    """Probe 9: does __dlpack__(stream=C) make C wait, without stopping the host, and at what cost?"""
    consumer = gpu.stream()
    if name == "jax":
        # How slow is the slow array, and how long does making it keep the host?
        dispatch, total = framework.dispatch_seconds(N, SLOW)
        answer("jax.slow_ms", round(total * 1e3, 3), "ms")
        answer("jax.dispatch_ms", round(dispatch * 1e3, 3), "ms")
        relied("jax.returns_before_its_array_is_ready", dispatch < total / 2)
    kinds = [("own", None)] if name == "jax" else list(framework.streams())[:3]
    for kind, stream in kinds:
        with framework.inside(stream) if stream is not None else contextlib.nullcontext():
            slow_array(gpu, framework, stream)
            gpu.synchronize_all()
            item = slow_array(gpu, framework, stream)
            before = pending(gpu, framework, item, stream)
            took = milliseconds(lambda: drop(item.__dlpack__(stream=consumer)))
            waits = not ready(gpu, consumer)
            relied(f"via_dlpack.{name}.{kind}.consumer_waits", waits or took > SLOW * 900, before)
            answer(f"via_dlpack.{name}.{kind}.host_stopped_ms", took, "ms")
            gpu.synchronize_all()
            item = slow_array(gpu, framework, stream)
            order(gpu, 1, consumer)
            covers = not ready(gpu, consumer)
            answer(f"legacy_join.{name}.{kind}.covers",
                   covers if pending(gpu, framework, item, stream) else "inconclusive")
            gpu.synchronize_all()
            loops = 2000
            begin = time.perf_counter_ns()
            for _ in range(loops):
                drop(item.__dlpack__(stream=consumer))
            answer(f"via_dlpack.{name}.{kind}.ns", round((time.perf_counter_ns() - begin) / loops), "ns")
            gpu.synchronize_all()


def reverse_wait(gpu, *_):
    """Probe 5: the import of Holoscan as its source reads: the event is recorded on the legacy stream and
    the producer's stream waits for it. Is a read on the legacy stream then stale? (Holoscan itself is not
    asked: only the two driver calls, in that order and in the right one.)"""
    for name, producer in (("non_blocking", gpu.stream()), ("blocking", gpu.stream(0))):
        for direction in ("reversed", "right"):
            memory, copy = proof.rows(gpu, 1, N), proof.rows(gpu, 1, N)
            gpu.spin(producer, SLOW)
            gpu.fill(memory.pointer, 0x3F, 4 * N, producer)
            if direction == "reversed":
                order(gpu, 1, producer)
            else:
                order(gpu, producer, 1)
            busy = not ready(gpu, producer)
            gpu.call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(copy.pointer),
                     ctypes.c_uint64(memory.pointer), ctypes.c_size_t(4 * N), ctypes.c_void_p(1))
            gpu.synchronize_all()
            pinned = gpu.pinned(4)
            gpu.read(pinned, copy.pointer, 4, producer)
            value = "stale" if pinned[0] == 0 else "right value"
            answer(f"holoscan_direction.{name}.{direction}", value if busy else "inconclusive")
            if direction == "right":
                relied(f"holoscan_direction.{name}.right_way_gives_the_value", value != "stale", busy)


def jax_getter(gpu, _, framework):
    """Probe 6: does JAX's getter of the interface wait for the array?"""
    slow_array(gpu, framework).block_until_ready()
    item = slow_array(gpu, framework)
    before = pending(gpu, framework, item, None)
    took = milliseconds(lambda: item.__cuda_array_interface__)
    answer("jax_getter.host_stopped_ms", took, "ms")
    answer("jax_getter.waits", took > SLOW * 500 if before else "inconclusive")
    answer("jax_getter.version", item.__cuda_array_interface__["version"])
    gpu.synchronize_all()


def jax_import(gpu, _, framework):
    """Probe 7: a slow producer on stream 1 or 2, then JAX: stale?"""
    for stream in (1, 2):
        memory = proof.rows(gpu, 1, N)
        gpu.spin(stream, SLOW)
        gpu.fill(memory.pointer, 0x3F, 4 * N, stream)
        taken = framework.jnp.asarray(memory.row(0, stream)) + 0.0
        first = float(taken[0])
        answer(f"jax_import.stream_{stream}", "stale" if first == 0 else "right value")
        gpu.synchronize_all()


NUMBA_OPT_OUT = """
import sys
sys.path[:0] = [{python!r}, {here!r}]
import proof
from frameworks import framework_of
from hostwait import _cai_driver
gpu = _cai_driver.driver()
gpu.make_current()
numba = framework_of("numba", gpu)
memory, producer = proof.rows(gpu, 1, 1024), gpu.stream()
target = numba.cuda.device_array(1024, dtype="float32")
stream = numba.cuda.external_stream(gpu.stream())
gpu.synchronize_all()
gpu.spin(producer, 0.03)
gpu.fill(memory.pointer, 0x3F, 4096, producer)
numba.copy[4, 256, stream](target, memory.row(0, producer))
gpu.synchronize_all()
print("value", float(target.copy_to_host()[0]))
"""


def numba_opt_out(*_):
    """Probe 8: with SYNC=0, is a kernel's CAI argument ordered all the same?"""
    program = NUMBA_OPT_OUT.format(python=str(proof.REPO / "python"), here=str(HERE / "python"))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "NUMBA_CUDA_ARRAY_INTERFACE_SYNC": "0"}, check=False)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("value ")]
    if not lines:
        answer("numba_opt_out", f"could not run: {ran.stderr.strip()[-200:]}")
        return
    answer("numba_opt_out", "not ordered" if float(lines[0][6:]) == 0 else "ordered all the same")


class exchange_api(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("unused", ctypes.c_void_p * 4),
                ("current_work_stream", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32,
                                                         ctypes.POINTER(ctypes.c_void_p)))]


def torch_exchange(gpu, _, framework):
    """Probe 12: what does the exchange API say for torch's default stream, and for another one?"""
    capsule = getattr(framework.torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        answer("torch_exchange", "this torch has none")
        return
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = exchange_api.from_address(get(capsule, b"dlpack_exchange_api"))
    answer("torch_exchange.version", f"{api.major}.{api.minor}")
    out = ctypes.c_void_p()
    api.current_work_stream(2, 0, ctypes.byref(out))
    answer("torch_exchange.default_stream", "null" if not out.value else hex(out.value))
    side = framework.torch.cuda.Stream()
    with framework.torch.cuda.stream(side):
        api.current_work_stream(2, 0, ctypes.byref(out))
    relied("torch_exchange.names_the_current_stream", out.value == side.cuda_stream)
    # It is the stream of the calling thread at that moment, which need not be the writer's.
    torch = framework.torch
    for habit in ("inside", "after", "after_wait_stream", "other_thread"):
        with torch.cuda.stream(side):
            torch.zeros(N, device="cuda").fill_(1.0)
            if habit == "inside":
                api.current_work_stream(2, 0, ctypes.byref(out))
        if habit == "after_wait_stream":
            torch.cuda.current_stream().wait_stream(side)
        if habit == "other_thread":
            worker = threading.Thread(target=api.current_work_stream, args=(2, 0, ctypes.byref(out)))
            worker.start()
            worker.join()
        elif habit != "inside":
            api.current_work_stream(2, 0, ctypes.byref(out))
        ordered = {side.cuda_stream}
        if habit == "after_wait_stream":
            ordered.add(torch.cuda.current_stream().cuda_stream)
        answer(f"torch_exchange.handed_over_{habit}",
               "names a stream that is ordered" if (out.value or 0) in ordered
               else "names a stream that is not ordered")


PROBES = (
    (reverse_wait, None), (dlpack_orders, "cupy"), (dlpack_orders, "torch"), (dlpack_orders, "jax"),
    (jax_getter, "jax"), (jax_import, "jax"), (torch_exchange, "torch"), (numba_opt_out, None))


def attempt(gpu, probe, name):
    label = probe.__name__ if name is None else f"{probe.__name__}.{name}"
    try:
        framework = None if name is None else framework_of(name, gpu)
        gpu.make_current()
        probe(gpu, name, framework)
    except proof.unavailable as reason:
        answer(label, f"could not run: {reason}"[:300])
    except Exception as problem:
        traceback.print_exc()
        answer(label, f"could not run: {type(problem).__name__}: {problem}"[:300])
        results.failed += 1
        gpu.synchronize_all()


def run(out, gpu, names=()):
    global results
    results = out
    gpu.spin(gpu.stream(), 0.0001)
    for probe, name in PROBES:
        if not names or probe.__name__ in names:
            attempt(gpu, probe, name)


if __name__ == "__main__":
    proof.script(lambda out, gpu: run(out, gpu, sys.argv[1:]))
