# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The host is not stopped: behind a 30 ms kernel acquire and release return in microseconds, and
hostwait itself, at level error, has nothing to refuse: runs under the preloaded library where that
is built.
"""

import ctypes
import os
import sys
import time

import proof
from frameworks import FRAMEWORKS

import hostwait

SECONDS = 0.03
TIMES = 20
N = 1024
NOT_READY = 600
LIMIT_US = 20.0
STOPPED_US = 15000.0  # half the kernel: far above the noise of a busy machine


def measure(gpu, make_busy, is_busy, glue, prefer):
    """Nanoseconds of view, acquire and release; how often the producer was busy afterwards."""
    consumer, policy = gpu.stream(), proof.read_policy()
    times, still_busy = {"view": [], "acquire": [], "release": []}, 0
    for turn in range(TIMES + 2):
        x = make_busy(turn)
        guard = hostwait.guard("error", hostwait.SYNC, label="unstopped")
        with guard:
            t0 = time.perf_counter_ns()
            view = glue.view(x, policy, prefer)
            t1 = time.perf_counter_ns()
            use = glue.use("stream", consumer, (view,), policy)
            t2 = time.perf_counter_ns()
            use.release()
            t3 = time.perf_counter_ns()
        busy = is_busy(x)
        del view, use, x
        gpu.synchronize_all()
        if turn >= 2:  # the first ones create the events
            still_busy += busy
            times["view"].append(t1 - t0)
            times["acquire"].append(t2 - t1)
            times["release"].append(t3 - t2)
    return times, still_busy


def judge(out, name, gpu, make_busy, is_busy, glue, prefer="automatic"):
    before = hostwait.stats() or {"refused": 0}
    times, still_busy = measure(gpu, make_busy, is_busy, glue, prefer)
    after = hostwait.stats() or {"refused": 0}
    acquire = proof.median_us(times["acquire"])
    slowest = max(map(max, times.values())) / 1e3
    refused = after["refused"] - before["refused"]
    # A producer that was ready by then has shown nothing.
    out.result(
        name,
        acquire < LIMIT_US
        and slowest < STOPPED_US
        and refused == 0
        and still_busy >= TIMES * 3 // 4,
        still_busy=still_busy,
        acquire_us=round(acquire, 2),
        view_us=round(proof.median_us(times["view"]), 2),
        release_us=round(proof.median_us(times["release"]), 2),
        acquire_max_us=round(max(times["acquire"]) / 1e3, 2),
        slowest_us=round(slowest, 2),
        times=TIMES,
        refused=refused,
        shim=hostwait.present(),
    )


def busy_stream(gpu, stream):
    return gpu.library.cuStreamQuery(ctypes.c_void_p(stream)) == NOT_READY


def run_framework(out, gpu, name, glue):
    try:
        framework = FRAMEWORKS[name](gpu)
    except proof.unavailable as reason:
        out.result(f"unstopped.{name}", None, reason=str(reason))
        return
    gpu.make_current()
    if name == "jax":
        framework.produce(N, 0.0, SECONDS).block_until_ready()
        for prefer in ("cai", "dlpack"):
            out.attempt(
                f"unstopped.jax.{prefer}",
                judge,
                out,
                f"unstopped.jax.{prefer}",
                gpu,
                lambda turn: framework.produce(N, float(turn), SECONDS),
                lambda x: not x.is_ready(),
                glue,
                prefer,
            )
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


def main():
    shim = os.environ.get("HOSTWAIT_SHIM") or proof.built("lib/libhostwait.so")
    if not hostwait.present() and shim is not None and "--once" not in sys.argv:
        preload = ":".join(filter(None, [str(shim), os.environ.get("LD_PRELOAD")]))
        os.execve(
            sys.executable,
            [sys.executable, __file__, "--once"],
            {**os.environ, "LD_PRELOAD": preload},
        )
    out, gpu = proof.start()
    if "--once" in sys.argv:
        out.result("unstopped.shim_present", hostwait.present())
    glue = proof.module("hostwait_cai_glue")
    for name in FRAMEWORKS:
        out.attempt(f"unstopped.{name}", run_framework, out, gpu, name, glue)
    out.end()


if __name__ == "__main__":
    main()
