# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""CuPy operations that wait for the GPU, and some that do not; `cupy_ops.py error` has them refused."""

import sys

import hostwait_ctypes as hostwait
from common import each
from frameworks import cupy_or_77

cp = cupy_or_77()

import numpy as np

rng = np.random.default_rng(3)
host = rng.standard_normal((512, 512)).astype(np.float32)
matrix = cp.asarray(host)


def busy():
    work = cp.empty(256 << 20, dtype=cp.uint8)
    for value in range(40):
        work.fill(value)


def get():
    busy()
    return matrix.get()


def asnumpy():
    busy()
    return cp.asnumpy(matrix * 2)


def asarray_pageable():
    busy()
    return cp.asarray(np.ones(4 << 20, dtype=np.float32))[:10].get()


def float_of_max():
    busy()
    return np.float32(float(matrix.max()))


def nonzero():
    busy()
    return cp.nonzero(matrix > 1)[0].get()


def masked_indexing():
    busy()
    return matrix[matrix > 1].get()


def linalg_eigh():
    busy()
    return cp.linalg.eigvalsh(matrix @ matrix.T).get()


def linalg_inv():
    busy()
    return cp.linalg.inv(matrix + 30 * cp.eye(512, dtype=cp.float32)).get()


def stream_synchronize():
    busy()
    cp.cuda.get_current_stream().synchronize()
    return np.int32(0)


def device_synchronize():
    busy()
    cp.cuda.Device().synchronize()
    return np.int32(0)


def free_all_blocks():
    busy()
    cp.get_default_memory_pool().free_all_blocks()
    return np.int32(0)


def refusals():
    if not hostwait.present():
        print("FAIL the preloaded library is not in this process")
        return 1
    failures = 0

    def expect(good, what):
        nonlocal failures
        failures += not good
        print(f"{'PASS' if good else 'FAIL'} {what}", flush=True)

    expected = matrix.get()
    for name, operation in {
            "get()": lambda: matrix.get(), "asnumpy()": lambda: cp.asnumpy(matrix),
            "float(max())": lambda: float(matrix.max()), "nonzero()": lambda: cp.nonzero(matrix > 1),
            "stream synchronize()": lambda: cp.cuda.get_current_stream().synchronize(),
            "device synchronize()": lambda: cp.cuda.Device().synchronize()}.items():
        error = None
        with hostwait.guard(hostwait.ERROR, label="no waits"):
            try:
                operation()
            except Exception as raised:  # noqa: BLE001: the type is what is printed
                error = raised
        expect(error is not None and "NotPermitted" in str(error),
               f"{name} raises ({type(error).__name__}: {str(error)[:60]})")
        expect(bool((matrix.get() == expected).all()), f"{name}: correct afterwards")
        try:
            operation()
            expect(True, f"{name}: works afterwards")
        except Exception as raised:  # noqa: BLE001
            expect(False, f"{name}: works afterwards ({raised})")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["error"]:
        sys.exit(refusals())
    each({f.__name__: f for f in (
        get, asnumpy, asarray_pageable, float_of_max, nonzero, masked_indexing, linalg_eigh,
        linalg_inv, stream_synchronize, device_synchronize, free_all_blocks)})
