# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The CUDA driver by ctypes, as far as the checker and the GPU proofs need it."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

# Spins until %globaltimer has advanced by `ns`; one thread suffices to keep a stream busy.
PTX = b""".version 6.4
.target sm_75
.address_size 64
.visible .entry hostwait_spin(.param .u64 ns) {
  .reg .pred %p; .reg .u64 %d<4>;
  ld.param.u64 %d0, [ns]; mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer; sub.u64 %d3, %d2, %d1; setp.lt.u64 %p, %d3, %d0; @%p bra again;
  ret;
}
"""
LEGACY, PER_THREAD = 1, 2
NON_BLOCKING = 1


class failed(RuntimeError):
    """A driver call failed; `code` is its CUresult."""

    def __init__(self, call, code):
        super().__init__(f"{call} failed with {code}")
        self.code = code


class driver:
    """One process-wide use of device `ordinal`'s primary context. Raises `failed` or OSError where
    there is no usable driver."""

    def __init__(self, ordinal=0):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.simulated = hasattr(self.library, "hostwait_sim_present")
        self.call("cuInit", c_uint(0))
        self.device = c_int()
        self.call("cuDeviceGet", byref(self.device), c_int(ordinal))
        self.context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), self.device)
        self._spin = None

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise failed(name, code)

    def make_current(self):
        """The primary context, unless the thread has one."""
        current = c_void_p()
        self.call("cuCtxGetCurrent", byref(current))
        if not current:
            self.call("cuCtxSetCurrent", self.context)

    def attribute(self, number):
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(number), self.device)
        return value.value

    def spin_kernel(self):
        if self._spin is None:
            module, kernel = c_void_p(), c_void_p()
            self.call("cuModuleLoadData", byref(module), c_char_p(PTX))
            self.call("cuModuleGetFunction", byref(kernel), module, c_char_p(b"hostwait_spin"))
            self._spin = kernel
        return self._spin

    def spin(self, stream, seconds, fill=False):
        """Keeps `stream` busy; with `fill`, also every multiprocessor, so that no other kernel
        starts meanwhile."""
        kernel = self.spin_kernel()
        blocks, threads = 1, 1
        if fill:
            processors, per_processor = self.attribute(16), self.attribute(39)
            threads = 1024
            blocks = processors * max(1, per_processor // threads)
        ns = c_uint64(int(seconds * 1e9))
        parameters = (c_void_p * 1)(ctypes.cast(ctypes.pointer(ns), c_void_p))
        self.call(
            "cuLaunchKernel",
            kernel,
            c_uint(blocks),
            c_uint(1),
            c_uint(1),
            c_uint(threads),
            c_uint(1),
            c_uint(1),
            c_uint(0),
            c_void_p(stream),
            parameters,
            None,
        )

    def stream(self, flags=NON_BLOCKING):
        handle = c_void_p()
        self.call("cuStreamCreate", byref(handle), c_uint(flags))
        return handle.value

    def synchronize(self, stream):
        self.call("cuStreamSynchronize", c_void_p(stream))

    def synchronize_all(self):
        self.call("cuCtxSynchronize")

    def allocate(self, size):
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def pinned(self, size):
        """Pinned host memory as a ctypes array; lives until the process ends."""
        pointer = c_void_p()
        self.call("cuMemHostAlloc", byref(pointer), c_size_t(size), c_uint(0))
        return (ctypes.c_ubyte * size).from_address(pointer.value)

    def read(self, host, pointer, size, stream):
        """Copies to pinned `host` in `stream` and waits for that stream."""
        self.call(
            "cuMemcpyDtoHAsync_v2", byref(host), c_uint64(pointer), c_size_t(size), c_void_p(stream)
        )
        self.synchronize(stream)

    def fill(self, pointer, byte, size, stream):
        self.call(
            "cuMemsetD8Async",
            c_uint64(pointer),
            ctypes.c_ubyte(byte),
            c_size_t(size),
            c_void_p(stream),
        )

    def pointer_kind(self, pointer):
        """ "device", "host", "managed" or None for memory that the driver does not know."""
        kind, managed = c_int(0), c_int(0)
        attributes = (c_int * 2)(2, 8)  # memory type, is managed
        data = (c_void_p * 2)(ctypes.addressof(kind), ctypes.addressof(managed))
        self.call("cuPointerGetAttributes", c_uint(2), attributes, data, c_uint64(pointer))
        if managed.value:
            return "managed"
        return {1: "host", 2: "device", 4: "managed"}.get(kind.value)

    def stream_works(self, stream):
        """Does the driver know the handle? Undefined for destroyed streams, says CUDA."""
        flags = c_uint()
        return self.library.cuStreamGetFlags(c_void_p(stream), byref(flags)) == 0
