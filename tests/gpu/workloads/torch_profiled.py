# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""torch.profiler, a CUPTI subscriber, and an NVTX range beside hostwait: the profile has its kernels
and copies."""

import os
import sys

from common import digest
from frameworks import torch_or_77

torch = torch_or_77()

import numpy as np
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile


def main():
    torch.manual_seed(5)
    x = torch.randn(512, 512, device="cuda")
    values = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        with torch.cuda.nvtx.range("profiled"):
            for _ in range(5):
                values.append((x @ x).sum().item())
        torch.cuda.synchronize()
    events = profiled.events()
    kernels = any(e.device_type == DeviceType.CUDA and "Mem" not in e.name for e in events)
    copies = sum("Memcpy DtoH" in e.name for e in events)
    synchronizations = any(e.name == "cudaDeviceSynchronize" for e in events)
    print(f"values\t{digest(np.array(values))}")
    print(f"profile\tkernels {kernels}, copies {copies}, synchronizations {synchronizations}")
    print(f"pid {os.getpid()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
