# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""CuPy, PyTorch, Numba and JAX behind one shape, for the GPU proofs.

A framework has `streams()`: (name, stream) pairs; `handle(stream)`: the driver's value;
`inside(stream)`: a context in which its work goes there; `array(n, stream)`, `fill(array, value,
stream)`; `take(exported, stream)`: reads a foreign array in that stream and returns an array of its
own with a copy; `same_values(array, value)`. JAX owns its streams and its arrays never change: it
has `produce` instead of `fill`. Constructors raise `unavailable`.
"""

import contextlib
import functools
import os
import statistics
import time
import warnings

from proof import unavailable


class cupy_framework:
    name = "cupy"

    def __init__(self, gpu):
        try:
            import cupy
        except Exception as problem:
            raise unavailable(f"cupy: {problem}") from problem
        self.cupy, self.gpu = cupy, gpu

    def streams(self):
        stream = self.cupy.cuda.Stream
        yield "default", stream.null
        yield "blocking", stream()
        yield "non_blocking", stream(non_blocking=True)
        yield "per_thread", stream.ptds

    def handle(self, stream):
        return stream.ptr or 1

    def inside(self, stream):
        return stream

    def array(self, n, stream):
        with stream:
            return self.cupy.zeros(n, dtype=self.cupy.float32)

    def fill(self, array, value, stream):
        array.fill(value)

    def take(self, exported, stream):
        return self.cupy.asarray(exported).copy()

    def same_values(self, array, value):
        return bool((array == value).all())


class torch_framework:
    name = "torch"

    def __init__(self, gpu):
        try:
            import torch

            torch.zeros(1, device="cuda")
        except Exception as problem:
            raise unavailable(f"torch: {problem}") from problem
        self.torch, self.gpu = torch, gpu

    def streams(self):
        cuda = self.torch.cuda
        yield "default", cuda.default_stream()
        yield "blocking", cuda.ExternalStream(self.gpu.stream(0))
        yield "non_blocking", cuda.Stream()
        yield "per_thread", cuda.ExternalStream(2)

    def handle(self, stream):
        return stream.cuda_stream or 1

    def inside(self, stream):
        return self.torch.cuda.stream(stream)

    def array(self, n, stream):
        return self.torch.zeros(n, device="cuda")

    def fill(self, array, value, stream):
        array.fill_(value)

    def take(self, exported, stream):
        return self.torch.from_dlpack(exported).clone()

    def same_values(self, array, value):
        return bool((array == value).all())


class numba_framework:
    name = "numba"

    def __init__(self, gpu):
        os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
        try:
            import numpy

            # NumPy 2.5 removed this alias, which numba-cuda up to 0.30 looks up when it compiles.
            if not hasattr(numpy, "row_stack"):
                numpy.row_stack = numpy.vstack
            from numba import cuda

            @cuda.jit
            def set_to(array, value):
                i = cuda.grid(1)
                if i < array.size:
                    array[i] = value

            @cuda.jit
            def copy(target, source):
                i = cuda.grid(1)
                if i < target.size:
                    target[i] = source[i]

            probe = cuda.device_array(32, dtype=numpy.float32)
            set_to[1, 32](probe, numpy.float32(1))
            copy[1, 32](probe, cuda.device_array(32, dtype=numpy.float32))
            cuda.synchronize()
        except Exception as problem:
            raise unavailable(f"numba: {type(problem).__name__}: {problem}"[:300]) from problem
        warnings.filterwarnings("ignore", module="numba")
        self.cuda, self.numpy, self.gpu, self.set_to, self.copy = cuda, numpy, gpu, set_to, copy

    def streams(self):
        yield "default", self.cuda.legacy_default_stream()
        yield "blocking", self.cuda.stream()
        yield "non_blocking", self.cuda.external_stream(self.gpu.stream(1))
        yield "per_thread", self.cuda.per_thread_default_stream()

    def handle(self, stream):
        handle = getattr(stream, "handle", stream)
        return int(getattr(handle, "value", handle) or 1)

    def inside(self, stream):
        return contextlib.nullcontext()

    def array(self, n, stream):
        return self.cuda.device_array(n, dtype=self.numpy.float32, stream=stream)

    def fill(self, array, value, stream):
        self.set_to[(array.size + 255) // 256, 256, stream](array, self.numpy.float32(value))

    def take(self, exported, stream):
        source = self.cuda.as_cuda_array(exported)
        target = self.cuda.device_array(source.size, dtype=self.numpy.float32, stream=stream)
        self.copy[(source.size + 255) // 256, 256, stream](target, source)
        return target

    def same_values(self, array, value):
        self.cuda.synchronize()
        return bool((array.copy_to_host() == value).all())


class jax_framework:
    """Its slow arrays end a chain of large matrix products, each an operation of its own: a loop in
    the program, or more launches than the queue holds, would keep the host until the end, and the
    array would be ready when it is returned. `dispatch_seconds` tells whether one is."""

    name = "jax"
    side = 4096

    def __init__(self, gpu):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        try:
            import jax
            import jax.numpy

            if jax.default_backend() != "gpu":
                raise RuntimeError(f"backend {jax.default_backend()}")
        except Exception as problem:
            raise unavailable(f"jax: {problem}") from problem
        self.jax, self.jnp = jax, jax.numpy
        self._seed = self.jnp.zeros((self.side, self.side), self.jnp.float32).block_until_ready()
        self._slow, self._products = {}, {}

    def produce(self, n, value, seconds):
        """A new array of `value`, ready after at least about `seconds` of work on JAX's stream."""
        return self._chain(n, self._count(seconds))(self._seed, self.jnp.float32(value))

    def dispatch_seconds(self, n, seconds):
        """(how long `produce` keeps the host, how long the array takes): medians of five."""
        dispatch, total = [], []
        for _ in range(7):
            begin = time.perf_counter()
            x = self.produce(n, 0.0, seconds)
            dispatch.append(time.perf_counter() - begin)
            x.block_until_ready()
            total.append(time.perf_counter() - begin)
        return statistics.median(dispatch[2:]), statistics.median(total[2:])

    def _chain(self, n, products):
        if (n, products) not in self._slow:
            jnp = self.jnp

            def slow(seed, value):
                for _ in range(products):
                    seed = jnp.dot(seed, seed)
                return jnp.full((n,), value, jnp.float32) + seed[0, 0]

            # Graphs are built and updated on the dispatching thread; not every release knows this.
            no_graphs = {"xla_gpu_enable_command_buffer": ""}
            try:
                chain = self.jax.jit(slow, compiler_options=no_graphs)
                chain(self._seed, jnp.float32(0)).block_until_ready()
            except Exception:
                chain = self.jax.jit(slow)
                chain(self._seed, jnp.float32(0)).block_until_ready()
            chain(self._seed, jnp.float32(0)).block_until_ready()  # the first without set-up
            self._slow[n, products] = chain
        return self._slow[n, products]

    def _count(self, seconds):
        """Products that take about `seconds`: the difference of two chains, measured once."""
        if seconds not in self._products:
            if "one" not in self._products:
                few, many = (self._best(products) for products in (2, 10))
                self._products["one"] = max((many - few) / 8, 1e-6)
            # More than this could fill the launch queue.
            self._products[seconds] = min(400, int(seconds / self._products["one"]) + 1)
        return self._products[seconds]

    def _best(self, products):
        chain, value = self._chain(32, products), self.jnp.float32(0)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            chain(self._seed, value).block_until_ready()
            times.append(time.perf_counter() - begin)
        return min(times)

    def take(self, exported, stream=None):
        return self.jax.dlpack.from_dlpack(exported) + self.jnp.float32(0)

    def same_values(self, array, value):
        return bool((array == value).all())


FRAMEWORKS = {
    "cupy": cupy_framework,
    "torch": torch_framework,
    "numba": numba_framework,
    "jax": jax_framework,
}


@functools.cache
def framework_of(name, gpu):
    """The framework, made once per process; raises `unavailable` each time where it is not here."""
    return FRAMEWORKS[name](gpu)
