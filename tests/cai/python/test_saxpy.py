# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The saxpy example on the simulated driver: its kernel computes nothing there, its order of calls
counts.

Each case is a child process whose libcuda.so.1 is the simulated one.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SIM = pathlib.Path(os.environ.get("HOSTWAIT_TEST_BUILD", "")) / "lib" / "sim"
MODULES = pathlib.Path(os.environ.get("HOSTWAIT_TEST_BUILD", "")) / "tests" / "cai_python"

PRELUDE = """
import ctypes, json, sys
sys.path.insert(0, MODULES)
cuda = ctypes.CDLL("libcuda.so.1")
cuda.hostwait_sim_recorded.restype = ctypes.c_char_p
cuda.hostwait_sim_recorded.argtypes = [ctypes.c_size_t]
cuda.hostwait_sim_recorded_count.restype = ctypes.c_size_t
cuda.hostwait_sim_host_waits.restype = ctypes.c_uint64
from hostwait._cai_driver import driver
gpu = driver()
gpu.make_current()
import saxpy

class array:
    def __init__(self, stream, pointer=None, n=8):
        self.pointer = pointer or gpu.allocate(4 * n)
        self.__cuda_array_interface__ = {"shape": (n,), "typestr": "<f4", "version": 3,
                                         "data": (self.pointer, False), "stream": stream}

def recorded(call):
    cuda.hostwait_sim_record(1)
    result = call()
    count = cuda.hostwait_sim_recorded_count()
    names = [cuda.hostwait_sim_recorded(i).decode() for i in range(count)]
    cuda.hostwait_sim_record(0)
    ordering = ("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel", "cuStreamSynchronize",
                "cuEventSynchronize", "cuCtxSynchronize")
    return result, [n for n in names if n.split("_v2")[0].split("_pts")[0] in ordering]

S, S2, C = gpu.stream(), gpu.stream(), gpu.stream()
warm = saxpy.saxpy(1.0, array(S), array(S), stream=C)
"""


def child(code, module_folder=None):
    if not (SIM / "libcuda.so.1").exists():
        pytest.skip("the simulated driver is not built")
    folder = module_folder or MODULES
    if not (folder / "saxpy.abi3.so").exists():
        pytest.skip("the example is not built")
    out = subprocess.run(
        [sys.executable, "-c", f"MODULES = {str(folder)!r}\n{PRELUDE}{code}"],
        env={**os.environ, "LD_LIBRARY_PATH": str(SIM)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


WAIT = ["cuEventRecord", "cuStreamWaitEvent"]
# The last record is behind the back edge: it tells when the owners may go.
KEEP = ["cuEventRecord"]


def test_wait_kernel_back_edge_while_the_producer_is_busy():
    out = child("""
x, y = array(S), array(S)
cuda.hostwait_sim_hold(ctypes.c_void_p(S))
_, calls = recorded(lambda: saxpy.saxpy(2.0, x, y, stream=C))
waiting = cuda.hostwait_sim_waiting_threads()
cuda.hostwait_sim_release_all()
print(json.dumps([calls, waiting]))
""")
    assert out == [[*WAIT, "cuLaunchKernel", *WAIT, *KEEP], 0]


def test_same_stream_needs_nothing():
    out = child("""
_, calls = recorded(lambda: saxpy.saxpy(2.0, array(C), array(C), stream=C))
print(json.dumps(calls))
""")
    assert out == ["cuLaunchKernel", *KEEP]


def test_two_producer_streams_two_waits():
    out = child("""
_, calls = recorded(lambda: saxpy.saxpy(2.0, array(S), array(S2), stream=C))
print(json.dumps(calls))
""")
    assert out == [*WAIT, *WAIT, "cuLaunchKernel", *WAIT, WAIT[1], *KEEP]


def test_the_result_is_a_producer():
    out = child("""
result = saxpy.saxpy(2.0, array(S), array(S), stream=C)
seen = result.__cuda_array_interface__
_, calls = recorded(lambda: saxpy.saxpy(1.0, result, result, stream=S))
_, capsule_calls = recorded(lambda: result.__dlpack__(stream=S))
print(json.dumps([seen["stream"] == C, seen["version"], seen["strides"], calls,
                  result.__dlpack_device__(), capsule_calls]))
""")
    assert out == [True, 3, None, [*WAIT, "cuLaunchKernel", *WAIT, *KEEP], [2, 0], WAIT]


def test_writing_into_a_foreign_array():
    out = child("""
out = array(S2)
same, calls = recorded(lambda: saxpy.saxpy(2.0, array(S), array(S), out, stream=C))
print(json.dumps([same is out, calls]))
""")
    assert out == [True, [*WAIT, *WAIT, "cuLaunchKernel", *WAIT, WAIT[1], *KEEP]]


def test_failed_launch_still_releases():
    out = child("""
cuda.hostwait_sim_fail(b"cuLaunchKernel", 719, 1)
def call():
    try:
        saxpy.saxpy(2.0, array(S), array(S), stream=C)
    except RuntimeError as problem:
        return str(problem)
print(json.dumps(recorded(call)))
""")
    assert out == ["the launch failed", [*WAIT, "cuLaunchKernel", *WAIT, *KEEP]]


@pytest.mark.parametrize(
    "mutant, calls",
    [("no_wait", ["cuLaunchKernel", *KEEP]), ("no_back_edge", [*WAIT, "cuLaunchKernel", *KEEP])],
)
def test_mutants_are_seen(mutant, calls):
    out = child(
        """
_, calls = recorded(lambda: saxpy.saxpy(2.0, array(S), array(S), stream=C))
print(json.dumps(calls))
""",
        MODULES / mutant,
    )
    assert out == calls


def test_wrong_arguments():
    out = child(
        """
seen = []
for call in (lambda: saxpy.saxpy(1.0, 3, array(S)),
             lambda: saxpy.saxpy(1.0, array(S), array(S, n=4)),
             lambda: saxpy.saxpy(1.0, array(S), array(S), stream=0)):
    try:
        call()
    except Exception as problem:
        seen.append(type(problem).__name__)
print(json.dumps(seen))
"""
    )
    assert out == ["TypeError", "ValueError", "ValueError"]
