# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Costs, as ratios of one run: a view against cuda.core's StridedMemoryView, and consumption behind
a busy stream against CuPy's own consumer. The last line sums up: view_vs_cuda_core, busy_vs_cupy.
"""

import statistics
import time

import proof
from frameworks import framework_of

LOOPS, ROUNDS = 20000, 7
BUSY_SECONDS, BUSY_TIMES = 0.002, 50


def per_call_ns(function):
    """Median of the rounds, nanoseconds a call."""
    function()
    results = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(LOOPS):
            function()
        results.append((time.perf_counter_ns() - begin) / LOOPS)
    return statistics.median(results)


def strided_memory_view(item):
    """A call of cuda.core that views `item` without ordering anything."""
    try:
        from cuda.core.utils import StridedMemoryView
    except ImportError:
        try:
            from cuda.core.experimental.utils import StridedMemoryView
        except ImportError as problem:
            raise proof.unavailable(f"cuda.core: {problem}") from problem
    make = getattr(StridedMemoryView, "from_any_interface", StridedMemoryView)
    make(item, stream_ptr=-1)
    return lambda: make(item, stream_ptr=-1)


def view_cost(out, gpu, glue, name, factors):
    try:
        framework = framework_of(name, gpu)
    except proof.unavailable as reason:
        out.result(f"cost.view.{name}", None, reason=str(reason))
        return
    _, stream = next(iter(framework.streams()))
    item = framework.array(1024, stream)
    gpu.synchronize_all()
    ours = per_call_ns(lambda: glue.quick_view(item))
    theirs = per_call_ns(strided_memory_view(item))
    getter = per_call_ns(lambda: item.__cuda_array_interface__)
    factors[name] = theirs / ours
    out.result(
        f"cost.view.{name}",
        True,
        ours_ns=round(ours),
        cuda_core_ns=round(theirs),
        getter_ns=round(getter),
        factor=round(theirs / ours, 2),
        source=glue.view(item).source,
    )


def busy_cost(out, gpu, glue, factors):
    framework = framework_of("cupy", gpu)
    cupy = framework.cupy
    producer = cupy.cuda.Stream(non_blocking=True)
    consumer = gpu.stream()
    memory = proof.rows(gpu, 1, 1024)
    item = memory.row(0, producer.ptr)
    ours, theirs = [], []
    for turn in range(BUSY_TIMES + 2):
        gpu.spin(producer.ptr, BUSY_SECONDS)
        begin = time.perf_counter_ns()
        use = glue.use("stream", consumer, (glue.view(item),), None)
        use.release()
        middle = time.perf_counter_ns()
        gpu.synchronize_all()
        gpu.spin(producer.ptr, BUSY_SECONDS)
        again = time.perf_counter_ns()
        taken = cupy.asarray(item)
        end = time.perf_counter_ns()
        del taken
        gpu.synchronize_all()
        if turn >= 2:
            ours.append(middle - begin)
            theirs.append(end - again)
    factors["busy"] = statistics.median(theirs) / statistics.median(ours)
    out.result(
        "cost.busy",
        factors["busy"] > 1,
        ours_us=round(proof.median_us(ours), 2),
        cupy_us=round(proof.median_us(theirs), 2),
        factor=round(factors["busy"], 1),
        kernel_us=BUSY_SECONDS * 1e6,
    )


def handshake_cost(out, gpu, glue):
    """The whole handshake from Python on idle streams: other stream, and the same one."""
    producer, consumer = gpu.stream(), gpu.stream()
    memory = proof.rows(gpu, 1, 1024)
    figures = {}
    for name, stream in (("other_stream", producer), ("same_stream", consumer)):
        view = glue.view(memory.row(0, stream))

        def once(view=view):
            glue.use("stream", consumer, (view,), None, keep_alive=False).release()

        figures[f"{name}_ns"] = round(per_call_ns(once))
        gpu.synchronize_all()
    out.result("cost.handshake", True, **figures)


def run(out, gpu):
    glue = proof.module("hostwait_cai_glue")
    factors = {}
    for name in ("cupy", "torch"):
        out.attempt(f"cost.view.{name}", view_cost, out, gpu, glue, name, factors)
    out.attempt("cost.busy", busy_cost, out, gpu, glue, factors)
    out.attempt("cost.handshake", handshake_cost, out, gpu, glue)
    views = {
        f"view_vs_cuda_core_{name}": round(factors[name], 2)
        for name in ("cupy", "torch")
        if name in factors
    }
    busy = {"busy_vs_cupy": round(factors["busy"], 1)} if "busy" in factors else {}
    out.result("cost.summary", True if views or busy else None, **views, **busy)


if __name__ == "__main__":
    proof.script(run)
