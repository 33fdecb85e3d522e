# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The host is not stopped: behind a 30 ms kernel acquire and release return in microseconds, and
hostwait itself, at level error, has nothing to refuse: runs under the preloaded library where that
is built.

How it is judged, for each kind of stream, of 20 turns after 2 for warming up:
  - nothing was refused, and no view, acquire or release took half the kernel's time;
  - the median of acquire is below 20 us, less the time inside the producer's own functions
    (__dlpack__, the getter of its dict), which is reported beside it: JAX is asked for its order by
    calling its Python code, and that is not this library's time;
  - after release the producer was still busy in at least 15 of the turns.
Just before each turn the same call is made once on idle streams, and the garbage collector is held
off: the process has slept for 30 ms, and what is asked for is the cost of the call, not of cold
caches. A call that waits for the producer waits as long as before.
"""

import ctypes
import functools
import gc
import os
import sys
import time

import proof
from frameworks import FRAMEWORKS, framework_of

import hostwait

SECONDS = 0.03
TIMES = 20
N = 1024
NOT_READY = 600
LIMIT_US = 20.0
STOPPED_US = 15000.0  # half the kernel: far above the noise of a busy machine


class inside_producer:
    """Time spent in the producer's own functions since `ns` was last set to 0."""

    ns = 0


def counted(function, *arguments, **keywords):
    begin = time.perf_counter_ns()
    try:
        return function(*arguments, **keywords)
    finally:
        inside_producer.ns += time.perf_counter_ns() - begin


@functools.cache
def proxy_of(kind):
    """A class in `kind`'s module, whose objects count the time inside those of `kind`."""

    class proxy:
        __module__ = kind.__module__
        __slots__ = ("item",)

        def __init__(self, item):
            self.item = item

        @property
        def __cuda_array_interface__(self):
            return counted(getattr, self.item, "__cuda_array_interface__")

        def __dlpack__(self, **keywords):
            return counted(self.item.__dlpack__, **keywords)

        def __dlpack_device__(self):
            return self.item.__dlpack_device__()

    return proxy


def timed(item):
    return proxy_of(type(item))(item)


def measure(gpu, make_busy, is_busy, glue, prefer, at_view, idle):
    """Nanoseconds of each step, and how often the producer was busy afterwards."""
    consumer, other, policy = gpu.stream(), gpu.stream(), proof.read_policy()
    steps = ("view", "acquire", "acquire_own", "producer", "release")
    times, still_busy = {step: [] for step in steps}, 0

    def hand_over(x, stream):
        inside_producer.ns = 0
        t0 = time.perf_counter_ns()
        if at_view:
            view = glue.view(x, policy, prefer, stream)
        else:
            view = glue.view(x, policy, prefer)
        t1 = time.perf_counter_ns()
        before = inside_producer.ns
        use = glue.use("stream", stream, (view,), policy)
        t2 = time.perf_counter_ns()
        producer = inside_producer.ns - before
        use.release()
        t3 = time.perf_counter_ns()
        return t1 - t0, t2 - t1, t2 - t1 - producer, producer, t3 - t2

    gc.collect()
    gc.disable()
    try:
        for turn in range(TIMES + 2):
            x = make_busy(turn)
            with hostwait.guard("error", hostwait.SYNC, label="unstopped"):
                hand_over(idle, other)
                taken = hand_over(x, consumer)
            busy = is_busy(x)
            del x
            gpu.synchronize_all()
            if turn >= 2:
                still_busy += busy
                for step, ns in zip(steps, taken):
                    times[step].append(ns)
    finally:
        gc.enable()
    return times, still_busy


def judge(out, name, gpu, make_busy, is_busy, glue, prefer="automatic", at_view=False, idle=None):
    if idle is None:
        memory = proof.rows(gpu, 1, N)
        idle = memory.row(0, gpu.stream())
    before = hostwait.stats() or {"refused": 0}
    times, still_busy = measure(gpu, make_busy, is_busy, glue, prefer, at_view, idle)
    after = hostwait.stats() or {"refused": 0}
    own = proof.median_us(times["acquire_own"])
    slowest = max(map(max, times.values())) / 1e3
    refused = after["refused"] - before["refused"]
    # A producer that was ready by then has shown nothing.
    conclusive = still_busy >= TIMES * 3 // 4
    out.result(
        name,
        own < LIMIT_US and slowest < STOPPED_US and refused == 0 and conclusive,
        **({} if conclusive else {"reason": "inconclusive: the producer was not busy"}),
        still_busy=still_busy,
        acquire_us=round(own, 2),
        acquire_max_us=round(max(times["acquire_own"]) / 1e3, 2),
        with_producers_code_us=round(proof.median_us(times["acquire"]), 2),
        inside_producer_us=round(proof.median_us(times["producer"]), 2),
        view_us=round(proof.median_us(times["view"]), 2),
        release_us=round(proof.median_us(times["release"]), 2),
        slowest_us=round(slowest, 2),
        times=TIMES,
        refused=refused,
        shim=hostwait.present(),
    )


def busy_stream(gpu, stream):
    return gpu.library.cuStreamQuery(ctypes.c_void_p(stream)) == NOT_READY


def run_jax(out, gpu, framework, glue):
    dispatch, total = framework.dispatch_seconds(N, SECONDS)
    out.result(
        "unstopped.jax.pending",
        dispatch < total / 2,
        dispatch_ms=round(dispatch * 1e3, 3),
        slow_ms=round(total * 1e3, 3),
    )
    idle = timed(framework.produce(N, 0.0, 0.0001).block_until_ready())
    last = []

    def make_busy(turn):
        last[:] = [framework.produce(N, float(turn), SECONDS)]
        return timed(last[0])

    for label, prefer, at_view in (
        ("cai", "cai", False),
        ("dlpack", "dlpack", False),
        ("dlpack_at_view", "dlpack", True),
    ):
        name = f"unstopped.jax.{label}"
        out.attempt(
            name,
            judge,
            out,
            name,
            gpu,
            make_busy,
            lambda _: not last[0].is_ready(),
            glue,
            prefer,
            at_view,
            idle,
        )


def run_framework(out, gpu, name, glue):
    try:
        framework = framework_of(name, gpu)
    except proof.unavailable as reason:
        out.result(f"unstopped.{name}", None, reason=str(reason))
        return
    gpu.make_current()
    if name == "jax":
        run_jax(out, gpu, framework, glue)
        return
    for kind, stream in framework.streams():

        def make_busy(turn, stream=stream):
            gpu.spin(framework.handle(stream), SECONDS)
            framework.fill(x, float(turn), stream)
            return x

        def with_stream(label, stream=stream, make_busy=make_busy):
            with framework.inside(stream):
                judge(
                    out,
                    label,
                    gpu,
                    make_busy,
                    lambda _: busy_stream(gpu, framework.handle(stream)),
                    glue,
                )

        try:
            x = framework.array(N, stream)
            framework.fill(x, 0.0, stream)
            gpu.synchronize_all()
        except Exception as problem:
            out.result(f"unstopped.{name}.{kind}", False, error=str(problem)[:300])
            continue
        out.attempt(f"unstopped.{name}.{kind}", with_stream, f"unstopped.{name}.{kind}")


def run(out, gpu):
    if "--once" in sys.argv:
        out.result("unstopped.shim_present", hostwait.present())
    glue = proof.module("hostwait_cai_glue")
    for name in FRAMEWORKS:
        out.attempt(f"unstopped.{name}", run_framework, out, gpu, name, glue)


def main():
    shim = os.environ.get("HOSTWAIT_SHIM") or proof.built("lib/libhostwait.so")
    if not hostwait.present() and shim is not None and "--once" not in sys.argv:
        preload = ":".join(filter(None, [str(shim), os.environ.get("LD_PRELOAD")]))
        os.execve(
            sys.executable,
            [sys.executable, __file__, "--once"],
            {**os.environ, "LD_PRELOAD": preload},
        )
    proof.script(run)


if __name__ == "__main__":
    main()
