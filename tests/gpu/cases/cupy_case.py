# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the CuPy cases share."""

from frameworks import cupy_or_77

cp = cupy_or_77()

_spin = cp.RawKernel(
    r"""
extern "C" __global__ void spin(unsigned long long ns) {
  unsigned long long from, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - from < ns);
}
""",
    "spin",
)


def busy(milliseconds=20):
    """A spinning kernel on the current stream; never waits."""
    _spin((1,), (1,), (cp.uint64(milliseconds * 1_000_000),))


def settle():
    """Waits for everything, outside the judged parts."""
    cp.cuda.runtime.deviceSynchronize()


busy(0.01)
settle()
