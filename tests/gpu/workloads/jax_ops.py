# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""JAX operations. The user's thread sleeps on an XLA future, which a driver-level tool cannot see;
what can be seen are the copies and waits of XLA's worker threads."""

from common import each
from frameworks import module_or_77, skip

jax = module_or_77("jax")
if jax.default_backend() != "gpu":
    skip("JAX has no GPU backend here")

import jax.numpy as jnp
import numpy as np

host = np.random.default_rng(5).standard_normal((512, 512)).astype(np.float32)
matrix = jax.device_put(host)


@jax.jit
def step(x):
    for _ in range(20):
        x = jnp.tanh(x @ x.T / 512.0)
    return x


def to_numpy():
    return np.asarray(step(matrix))


def float_of_sum():
    return np.float32(float(step(matrix).sum()))


def device_get():
    return jax.device_get(step(matrix))


def device_put():
    return np.asarray(jax.device_put(host * 2))


def block_until_ready():
    step(matrix).block_until_ready()
    return np.int32(0)


if __name__ == "__main__":
    each({f.__name__: f for f in (
        to_numpy, float_of_sum, device_get, device_put, block_until_ready)})
