# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the GPU proofs (gpu_*.py) share: finding the built modules, buffers, results as JSON lines.

A proof prints one JSON object per result: name, ok (null: could not be run, with a reason),
figures. It ends with status 0, 1 after a failure, or 77 where there is no GPU.
"""

import ctypes
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import traceback

REPO = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(REPO / "python"))

from hostwait import _cai_driver  # noqa: E402

FOLDERS = ("build-carry", "build-gpu", "build")


def built(*names):
    """The first of the files, below the usual build folders or $HOSTWAIT_TEST_BUILD."""
    roots = [pathlib.Path(p) for p in (os.environ.get("HOSTWAIT_TEST_BUILD"),) if p]
    for root in roots + [REPO / folder for folder in FOLDERS]:
        for name in names:
            if (root / name).exists():
                return root / name
    return None


def module(name, folder="."):
    """A built extension module; mutants share a name and differ in the folder."""
    path = built(
        f"tests/cai_python/{folder}/{name}.abi3.so", f"lib/cai_python/{folder}/{name}.abi3.so"
    )
    if path is None:
        raise ImportError(f"{folder}/{name}.abi3.so is not built (target {name})")
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class proof:
    """Results of one script."""

    def __init__(self):
        self.failed = 0

    def result(self, name, ok, **figures):
        self.failed += ok is False
        print(json.dumps({"name": name, "ok": ok, **figures}), flush=True)

    def attempt(self, name, function, *arguments):
        """Runs one proof; an exception is its failure and stops nothing else."""
        try:
            function(*arguments)
        except unavailable as reason:
            self.result(name, None, reason=str(reason))
        except Exception as problem:
            traceback.print_exc()
            self.result(name, False, error=f"{type(problem).__name__}: {problem}"[:500])

    def end(self):
        sys.stdout.flush()
        sys.stderr.flush()
        # Frameworks tear down in orders of their own; the verdict is known.
        os._exit(1 if self.failed else 0)


class unavailable(RuntimeError):
    """Something that this machine does not have."""


def start():
    """(proof, driver). Leaves with 77 where there is no GPU."""
    library = os.environ.get("HOSTWAIT_CAI_LIBRARY") or built("lib/libhostwait_cai.so")
    if library is None:
        print(
            json.dumps({"name": "start", "ok": False, "error": "libhostwait_cai.so is not built"})
        )
        sys.exit(1)
    os.environ["HOSTWAIT_CAI_LIBRARY"] = str(library)
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)  # modules find it by its name, wherever they lie
    try:
        gpu = _cai_driver.driver()
        gpu.make_current()
        if gpu.simulated:
            raise OSError("this is the simulated driver")
    except (OSError, AttributeError, _cai_driver.failed) as problem:
        print(f"skipped: no GPU ({problem})")
        sys.exit(77)
    return proof(), gpu


def script(run):
    """The main program of a proof: run(proof, driver). gpu_proofs.py runs several in one process."""
    out, gpu = start()
    run(out, gpu)
    out.end()


class raw_array:
    """Float32 memory shown through the interface; `stream` is what the dict says."""

    def __init__(self, pointer, n, stream=None, version=3):
        self.pointer, self.n = pointer, n
        self.__cuda_array_interface__ = {
            "shape": (n,),
            "typestr": "<f4",
            "data": (pointer, False),
            "version": version,
            "strides": None,
        }
        if version >= 3:
            self.__cuda_array_interface__["stream"] = stream


class rows:
    """`count` rows of `n` floats in one allocation."""

    def __init__(self, gpu, count, n):
        self.gpu, self.count, self.n = gpu, count, n
        self.pointer = gpu.allocate(4 * count * n)
        self.clear()

    def clear(self, byte=0):
        self.gpu.call(
            "cuMemsetD8_v2",
            ctypes.c_uint64(self.pointer),
            ctypes.c_ubyte(byte),
            ctypes.c_size_t(4 * self.count * self.n),
        )
        self.gpu.synchronize_all()

    def row(self, i, stream=None):
        return raw_array(self.pointer + 4 * self.n * i, self.n, stream)

    def set_row_numbers(self, first=1):
        """Row i holds first + i."""
        for i in range(self.count):
            bits = ctypes.c_uint32.from_buffer(ctypes.c_float(first + i)).value
            self.gpu.call(
                "cuMemsetD32_v2",
                ctypes.c_uint64(self.pointer + 4 * self.n * i),
                ctypes.c_uint(bits),
                ctypes.c_size_t(self.n),
            )
        self.gpu.synchronize_all()

    def wrong_rows(self, expected):
        """How many rows do not hold expected(i) in every element. Waits for everything."""
        self.gpu.synchronize_all()
        host = (ctypes.c_float * (self.count * self.n))()
        self.gpu.call(
            "cuMemcpyDtoH_v2",
            ctypes.byref(host),
            ctypes.c_uint64(self.pointer),
            ctypes.c_size_t(ctypes.sizeof(host)),
        )
        wrong = 0
        for i in range(self.count):
            value = expected(i)
            part = host[self.n * i : self.n * (i + 1)]
            wrong += min(part) != value or max(part) != value
        return wrong


def read_policy():
    """The default policy for a consumer that only reads: JAX's arrays are read-only."""
    from hostwait import _cai_abi

    policy = _cai_abi.policy()
    _cai_abi.library().hostwait_cai_policy_init(ctypes.byref(policy))
    policy.intent = _cai_abi.READ
    return bytes(policy)


def median_us(nanoseconds):
    return statistics.median(nanoseconds) / 1e3
