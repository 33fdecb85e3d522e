# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The frameworks of the Python programs here, or the end with status 77 and the reason where one is not
installed or sees no GPU. Whatever else fails at its import is a failure of the program. The programs
find this file by PYTHONPATH (harness.Session.environment)."""

import importlib
import sys


def skip(reason):
    print(reason, flush=True)
    sys.exit(77)


def module_or_77(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        return skip(missing)


def torch_or_77():
    torch = module_or_77("torch")
    if not torch.cuda.is_available():
        skip("no CUDA device for PyTorch")
    return torch


def cupy_or_77():
    cupy = module_or_77("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        skip(error)
    return cupy
