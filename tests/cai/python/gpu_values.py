# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Right values: CuPy, PyTorch, Numba and JAX as producers and consumers against the saxpy example,
on default, blocking, non-blocking and per-thread streams; and the same with half the handshake
removed, which must give wrong values.

gpu_values.py [FRAMEWORK…]; HOSTWAIT_PROOF_REPETITIONS (default 1000).
"""

import os
import sys

import proof
from frameworks import FRAMEWORKS

REPETITIONS = int(os.environ.get("HOSTWAIT_PROOF_REPETITIONS", "1000"))
SECONDS = 0.002
N = 1024


def to_example(gpu, framework, stream, saxpy, repetitions):
    """Wrong rows of `repetitions`. Even ones: the producer is late, so a missing wait shows. Odd
    ones: the consumer is late and the producer overwrites, so a missing back edge shows."""
    results, zeros = proof.rows(gpu, repetitions, N), proof.rows(gpu, 1, N)
    consumer = gpu.stream()
    handle = framework.handle(stream)
    with framework.inside(stream):
        x = framework.array(N, stream)
        framework.fill(x, -1.0, stream)
        gpu.synchronize_all()
        for i in range(repetitions):
            gpu.spin(handle if i % 2 == 0 else consumer, SECONDS)
            framework.fill(x, float(i + 1), stream)
            saxpy.saxpy(1.0, x, zeros.row(0), results.row(i), stream=consumer)
            framework.fill(x, -1.0, stream)
    return results.wrong_rows(lambda i: i + 1)


def from_example(gpu, framework, stream, saxpy, repetitions, own):
    """The example produces, late, in its stream `own`; the framework copies in `stream`."""
    sources, zeros = proof.rows(gpu, repetitions, N), proof.rows(gpu, 1, N)
    sources.set_row_numbers()
    kept, copies = [], []
    with framework.inside(stream):
        for i in range(repetitions):
            gpu.spin(own, SECONDS)
            made = saxpy.saxpy(1.0, sources.row(i), zeros.row(0), stream=own)
            copies.append(framework.take(made, stream))
            kept.append(made)  # no framework orders the way back: freeing waits for the end
        gpu.synchronize_all()
        wrong = sum(not framework.same_values(copy, i + 1) for i, copy in enumerate(copies))
    del copies
    gpu.synchronize_all()
    return wrong


def jax_to_example(gpu, framework, saxpy, repetitions):
    """JAX frees and reuses an array when nobody refers to it: keeping it is the glue's part."""
    results, zeros = proof.rows(gpu, repetitions, N), proof.rows(gpu, 1, N)
    consumer = gpu.stream()
    framework.produce(N, 0.0, SECONDS).block_until_ready()
    for i in range(repetitions):
        if i % 2:
            gpu.spin(consumer, SECONDS)
        x = framework.produce(N, float(i + 1), SECONDS)
        saxpy.saxpy(1.0, x, zeros.row(0), results.row(i), stream=consumer)
        del x
    return results.wrong_rows(lambda i: i + 1)


def jax_from_example(gpu, framework, saxpy, repetitions):
    sources, zeros = proof.rows(gpu, repetitions, N), proof.rows(gpu, 1, N)
    sources.set_row_numbers()
    own = gpu.stream()
    kept, copies = [], []
    for i in range(repetitions):
        gpu.spin(own, SECONDS)
        made = saxpy.saxpy(1.0, sources.row(i), zeros.row(0), stream=own)
        copies.append(framework.take(made))
        kept.append(made)
    wrong = sum(not framework.same_values(copy, i + 1) for i, copy in enumerate(copies))
    del copies
    gpu.synchronize_all()
    return wrong


def judge(out, name, count, function, *arguments):
    wrong = function(*arguments)
    out.result(name, wrong == 0, wrong=wrong, repetitions=count)


def run_framework(out, gpu, name, saxpy):
    try:
        framework = FRAMEWORKS[name](gpu)
    except proof.unavailable as reason:
        out.result(f"values.{name}", None, reason=str(reason))
        return
    gpu.make_current()
    count = REPETITIONS
    if name == "jax":
        out.attempt(
            "values.jax.to_example",
            judge,
            out,
            "values.jax.to_example",
            count,
            jax_to_example,
            gpu,
            framework,
            saxpy,
            count,
        )
        out.attempt(
            "values.jax.from_example",
            judge,
            out,
            "values.jax.from_example",
            count,
            jax_from_example,
            gpu,
            framework,
            saxpy,
            count,
        )
        return
    for kind, stream in framework.streams():
        to, back = f"values.{name}.{kind}.to_example", f"values.{name}.{kind}.from_example"
        out.attempt(to, judge, out, to, count, to_example, gpu, framework, stream, saxpy, count)
        out.attempt(
            back,
            judge,
            out,
            back,
            count,
            from_example,
            gpu,
            framework,
            stream,
            saxpy,
            count,
            gpu.stream(),
        )
    if name == "cupy":
        _, stream = next(framework.streams())
        for kind, own in (("legacy", 1), ("per_thread", 2), ("blocking", gpu.stream(0))):
            label = f"values.cupy.from_example_on_{kind}"
            out.attempt(
                label, judge, out, label, 100, from_example, gpu, framework, stream, saxpy, 100, own
            )


def run_mutants(out, gpu):
    """Each mutant must give wrong values; one that does not means that the proof sees nothing."""
    for name in ("cupy", "torch"):
        try:
            framework = FRAMEWORKS[name](gpu)
        except proof.unavailable as reason:
            out.result(f"mutants.{name}", None, reason=str(reason))
            continue
        stream = dict(framework.streams())["non_blocking"]
        for mutant in ("no_wait", "no_back_edge"):
            wrong = to_example(gpu, framework, stream, proof.module("saxpy", mutant), 50)
            out.result(f"mutants.{name}.{mutant}", wrong > 0, wrong=wrong, repetitions=50)


def main(names):
    out, gpu = proof.start()
    saxpy = proof.module("saxpy")
    for name in names or FRAMEWORKS:
        out.attempt(f"values.{name}", run_framework, out, gpu, name, saxpy)
    if not names:
        out.attempt("mutants", run_mutants, out, gpu)
    out.end()


if __name__ == "__main__":
    main(sys.argv[1:])
