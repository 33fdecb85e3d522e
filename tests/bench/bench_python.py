# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""bench_python.py LIBRARY PACKAGE_FOLDER: costs seen from Python, as JSON. Runs under the preload
with the options of the moment; figures.py puts the runs together."""

import ctypes
import json
import statistics
import sys
import time
import traceback

library, package = sys.argv[1:3]
sys.path.insert(0, package)
import hostwait  # noqa: E402: the folder is known only now

bench = ctypes.CDLL(library)
for name in ("bench_calls", "bench_unwind", "bench_nvtx", "bench_first_sight"):
    getattr(bench, name).restype = ctypes.c_double
for name in ("bench_calls", "bench_unwind", "bench_nvtx"):
    getattr(bench, name).argtypes = [ctypes.c_long]
bench.bench_first_sight.argtypes = [ctypes.c_uint32]
if bench.bench_start() != 0:
    sys.exit(77)
DEPTH = 20  # Python frames at the call, this module's and the measured function's included


def at_depth(depth, function):
    return function() if depth == 0 else at_depth(depth - 1, function)


def shaped(depth, shape, function):
    """Two lines, of which the bits of `shape` choose one in every frame."""
    if depth == 0:
        return function()
    if shape & 1:
        return shaped(depth - 1, shape >> 1, function)
    return shaped(depth - 1, shape >> 1, function)


def lowest(function, rounds=7):
    return min(function() for _ in range(rounds))


def extract_stack(times=200):
    start = time.perf_counter_ns()
    for _ in range(times):
        traceback.extract_stack(limit=DEPTH)
    return (time.perf_counter_ns() - start) / times


def guards(times=20000):
    start = time.perf_counter_ns()
    for _ in range(times):
        with hostwait.guard("error"):
            pass
    guarded = time.perf_counter_ns() - start
    start = time.perf_counter_ns()
    for _ in range(times):
        pass
    return (guarded - (time.perf_counter_ns() - start)) / times


below = DEPTH - 3  # the module, at_depth's last frame and the lambda
measured = {
    "call": at_depth(below, lambda: lowest(lambda: bench.bench_calls(20000))),
    "unwind": at_depth(below, lambda: lowest(lambda: bench.bench_unwind(2000))),
    "extract_stack": at_depth(below, lambda: lowest(extract_stack)),
    "nvtx": lowest(lambda: bench.bench_nvtx(20000)),
    "guard": lowest(guards),
}
# The same 2000 stacks twice: the second time each is known.
first, known = (sorted([shaped(below, number, lambda: bench.bench_first_sight(number))
                        for number in range(2000)]) for _ in range(2))
measured["first_sight"] = statistics.median(first)
measured["first_sight_p99"] = first[len(first) * 99 // 100]
measured["second_sight"] = statistics.median(known)
json.dump(measured, sys.stdout)
