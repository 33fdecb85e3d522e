# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Sixteen threads at a time wait below many different Python stacks, shallow and deep, and make place
for new threads: stress_program.py WAITS. Prints how many waits were made."""
import contextlib
import ctypes
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import hostwait  # noqa: E402

WAITS_OF_A_THREAD, THREADS_AT_A_TIME, DEEPEST = 125, 16, 400
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
sys.setrecursionlimit(5000)
failures = []


def deep(depth, shape):
    if depth == 0:
        return cuda.cuStreamSynchronize(None)
    if shape & 1:
        return deep(depth - 1, shape >> 1)
    return through_c(depth - 1, shape >> 1)


def through_c(depth, shape):
    return list(map(deep, [depth], [shape]))[0]


def generated(depth, shape):
    yield deep(depth, shape)


def work(seed, waits):
    chance = random.Random(seed)
    if cuda.cuCtxSetCurrent(context) != 0:
        failures.append(seed)
    for _ in range(waits):
        depth = DEEPEST if chance.random() < 0.02 else chance.randrange(16)
        shape = chance.randrange(8)
        label = f"label {chance.randrange(4)}" if chance.random() < 0.1 else None
        with hostwait.guard("log", label=label) if label else contextlib.nullcontext():
            if next(generated(depth, shape)) != 0:
                failures.append(seed)


def keep(seeds, left, lock):
    while True:
        with lock:
            waits = min(left[0], WAITS_OF_A_THREAD)
            left[0] -= waits
            seed = next(seeds)
        if waits == 0:
            return
        thread = threading.Thread(target=work, args=(seed, waits))
        thread.start()
        thread.join()


def main(waits):
    seeds, left, lock = iter(range(1, 1 << 30)), [waits], threading.Lock()
    keepers = [threading.Thread(target=keep, args=(seeds, left, lock))
               for _ in range(THREADS_AT_A_TIME)]
    for thread in keepers:
        thread.start()
    for thread in keepers:
        thread.join()
    if failures:
        sys.exit(f"failed: {failures[:5]}")
    print(waits)


main(int(sys.argv[1]))
