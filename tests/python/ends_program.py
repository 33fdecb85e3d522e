# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Waits while the interpreter ends: in an exit handler, in the destructor of a module's object, and
all the time on threads that are not waited for. Prints what the exit handler's stack is."""
import atexit
import ctypes
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import hostwait  # noqa: E402

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0


def wait(label):
    with hostwait.guard("log", label=label):
        cuda.cuCtxSetCurrent(context), cuda.cuCtxSynchronize()


class Last:
    def __del__(self, driver=cuda, context=context):  # this module's names may be gone by then
        driver.cuCtxSetCurrent(context)
        driver.cuCtxSynchronize()


def at_exit():
    wait("atexit")


waited = threading.Semaphore(0)


def without_end():
    for _ in range(20):
        wait("daemon")
    waited.release()
    while True:
        wait("daemon")


kept = Last()
sys.kept_to_the_end = Last()
atexit.register(at_exit)
for _ in range(4):
    threading.Thread(target=without_end, daemon=True).start()
for _ in range(4):
    waited.acquire()
json.dump([[__file__, "wait", wait.__code__.co_firstlineno + 2],
           [__file__, "at_exit", at_exit.__code__.co_firstlineno + 1]], sys.stdout)
