# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Right values: CuPy, PyTorch, Numba and JAX as producers and consumers against the saxpy example,
on default, blocking, non-blocking and per-thread streams; and the same with half the handshake
removed, which must give wrong values.

gpu_values.py [FRAMEWORK…]; HOSTWAIT_PROOF_REPETITIONS (default 1000).

Each proof is a generator that enqueues one repetition at a time and returns the number of wrong
rows. Two of them on streams that have nothing to do with each other run by turns, so that their
kernels overlap on the device; what is late for what within each stays as it is.
"""

import os
import sys
import traceback

import proof
from frameworks import FRAMEWORKS, framework_of

REPETITIONS = int(os.environ.get("HOSTWAIT_PROOF_REPETITIONS", "1000"))
SECONDS = 0.002
N = 1024
# The legacy stream orders blocking and per-thread streams, so a pair has one stream of each side.
PAIRS = (("default", "non_blocking"), ("blocking", "per_thread"))


def to_example(gpu, framework, stream, saxpy, repetitions):
    """Even rows: the producer is late, so a missing wait shows. Odd ones: the consumer is late and
    the producer overwrites, so a missing back edge shows."""
    results, zeros = proof.rows(gpu, repetitions, N), proof.rows(gpu, 1, N)
    consumer = gpu.stream()
    handle = framework.handle(stream)
    with framework.inside(stream):
        x = framework.array(N, stream)
        framework.fill(x, -1.0, stream)
    gpu.synchronize_all()
    for i in range(repetitions):
        with framework.inside(stream):
            gpu.spin(handle if i % 2 == 0 else consumer, SECONDS)
            framework.fill(x, float(i + 1), stream)
            saxpy.saxpy(1.0, x, zeros.row(0), results.row(i), stream=consumer)
            framework.fill(x, -1.0, stream)
        yield
    return results.wrong_rows(lambda i: i + 1)


def from_example(gpu, framework, stream, saxpy, repetitions, own):
    """The example produces, late, in its stream `own`; the framework copies in `stream`."""
    sources, zeros = proof.rows(gpu, repetitions, N), proof.rows(gpu, 1, N)
    sources.set_row_numbers()
    kept, copies = [], []
    for i in range(repetitions):
        with framework.inside(stream):
            gpu.spin(own, SECONDS)
            made = saxpy.saxpy(1.0, sources.row(i), zeros.row(0), stream=own)
            copies.append(framework.take(made, stream))
            kept.append(made)  # no framework orders the way back: freeing waits for the end
        yield
    gpu.synchronize_all()
    with framework.inside(stream):
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
        yield
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
        yield
    wrong = sum(not framework.same_values(copy, i + 1) for i, copy in enumerate(copies))
    del copies
    gpu.synchronize_all()
    return wrong


def by_turns(out, count, proofs):
    """Runs the generators `proofs` (label: generator) by turns and reports each."""
    while proofs:
        for label, steps in list(proofs.items()):
            try:
                next(steps)
                continue
            except StopIteration as end:
                out.result(label, end.value == 0, wrong=end.value, repetitions=count)
            except Exception as problem:
                traceback.print_exc()
                out.result(label, False, error=f"{type(problem).__name__}: {problem}"[:500])
            del proofs[label]


def wrong_rows(steps):
    """One proof to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def run_framework(out, gpu, name, saxpy):
    try:
        framework = framework_of(name, gpu)
    except proof.unavailable as reason:
        out.result(f"values.{name}", None, reason=str(reason))
        return
    gpu.make_current()
    if name == "jax":
        run_jax(out, gpu, framework, saxpy)
        return
    streams = dict(framework.streams())
    for pair in PAIRS:
        common = [(kind, streams[kind]) for kind in pair]
        by_turns(
            out,
            REPETITIONS,
            {
                f"values.{name}.{kind}.to_example": to_example(
                    gpu, framework, stream, saxpy, REPETITIONS
                )
                for kind, stream in common
            },
        )
        by_turns(
            out,
            REPETITIONS,
            {
                f"values.{name}.{kind}.from_example": from_example(
                    gpu, framework, stream, saxpy, REPETITIONS, gpu.stream()
                )
                for kind, stream in common
            },
        )
    if name == "cupy":
        for kind, own in (("legacy", 1), ("per_thread", 2), ("blocking", gpu.stream(0))):
            steps = from_example(gpu, framework, streams["default"], saxpy, 100, own)
            by_turns(out, 100, {f"values.cupy.from_example_on_{kind}": steps})


def run_jax(out, gpu, framework, saxpy):
    dispatch, total = framework.dispatch_seconds(N, SECONDS)
    # An array that is ready when it is returned proves nothing about order.
    pending = dispatch < total / 2
    out.result(
        "values.jax.pending",
        pending,
        dispatch_ms=round(dispatch * 1e3, 3),
        slow_ms=round(total * 1e3, 3),
        **({} if pending else {"reason": "inconclusive: ready when returned"}),
    )
    # JAX has one stream, so these two have to do with each other.
    by_turns(
        out,
        REPETITIONS,
        {"values.jax.to_example": jax_to_example(gpu, framework, saxpy, REPETITIONS)},
    )
    by_turns(
        out,
        REPETITIONS,
        {"values.jax.from_example": jax_from_example(gpu, framework, saxpy, REPETITIONS)},
    )


def run_mutants(out, gpu):
    """Each mutant must give wrong values; one that does not means that the proof sees nothing.
    JAX's arrays never change, so there is no overwriting for a missing back edge to let through."""
    for name in ("cupy", "torch", "numba", "jax"):
        try:
            framework = framework_of(name, gpu)
        except proof.unavailable as reason:
            out.result(f"mutants.{name}", None, reason=str(reason))
            continue
        for mutant in ("no_wait",) if name == "jax" else ("no_wait", "no_back_edge"):
            saxpy = proof.module("saxpy", mutant)
            if name == "jax":
                wrong = wrong_rows(jax_to_example(gpu, framework, saxpy, 50))
            else:
                stream = dict(framework.streams())["non_blocking"]
                wrong = wrong_rows(to_example(gpu, framework, stream, saxpy, 50))
            out.result(f"mutants.{name}.{mutant}", wrong > 0, wrong=wrong, repetitions=50)


def run(out, gpu, names=()):
    saxpy = proof.module("saxpy")
    for name in names or FRAMEWORKS:
        out.attempt(f"values.{name}", run_framework, out, gpu, name, saxpy)
    if not names:
        out.attempt("mutants", run_mutants, out, gpu)


if __name__ == "__main__":
    proof.script(lambda out, gpu: run(out, gpu, sys.argv[1:]))
