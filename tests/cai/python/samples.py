# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Producers for the checker's slow-kernel test: one that obeys version 3, and three that do not."""

import ctypes
import itertools

from hostwait import _cai_driver

N = 4096
_gpu = _cai_driver.driver()
_gpu.make_current()
_memory = _gpu.allocate(4 * N)
_work, _other = _gpu.stream(), _gpu.stream()
_values = itertools.count(1)


class array:
    def __init__(self, stream, version=3):
        self.__cuda_array_interface__ = {
            "shape": (N,),
            "typestr": "<i4",
            "data": (_memory, False),
            "version": version,
        }
        if version >= 3:
            self.__cuda_array_interface__["stream"] = stream


def _queue():
    """Work that no kernel elsewhere hides: a copy kernel behind whatever fills the GPU."""
    _gpu.spin(_work, 1e-4)
    _gpu.call(
        "cuMemsetD32Async",
        ctypes.c_uint64(_memory),
        ctypes.c_uint(next(_values)),
        ctypes.c_size_t(N),
        ctypes.c_void_p(_work),
    )


def good():
    _queue()
    return array(_work)


def wrong_stream():
    _queue()
    return array(_other)


def no_stream():
    _queue()
    return array(None)


def ready():
    _queue()
    _gpu.synchronize(_work)
    return array(None)


def version_2():
    _queue()
    return array(None, version=2)
