# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Waits under many shapes of Python stack; prints what the interpreter itself says of each.

Run under hostwait on the simulated driver. Each case is one wait under its own label; standard
output is one JSON object: label -> [[file, qualified function, line], …], innermost first.
"""
import asyncio
import ctypes
import functools
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
expected = {}


def wait(label):
    """The wait and the interpreter's own stack, from one and the same line."""
    with hostwait.guard("log", label=label):
        cuda.cuCtxSetCurrent(context), cuda.cuCtxSynchronize(), note(label, sys._getframe())


def note(label, frame):
    stack = []
    while frame is not None:
        stack.append([frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno])
        frame = frame.f_back
    expected[label] = stack


def recurse(depth, then):
    if depth == 0:
        then()
    else:
        recurse(
            depth - 1,
            then,
        )


class Größe:
    """Names beyond ASCII, methods, properties, nested functions."""

    @property
    def länge(self):
        return [wait("property in a comprehension") for _ in range(1)]

    @staticmethod
    def fest():
        def inner():
            wait("nested function")
        inner()

    def __del__(self):
        wait("destructor")


def generator():
    yield 1
    wait("generator")
    yield 2


def delegating():
    yield from generator()


async def coroutine():
    await asyncio.sleep(0)
    wait("coroutine")


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        wait("while an exception passes")
        return True


def main():
    wait("plain")
    recurse(10, lambda: wait("recursion and a lambda"))
    recurse(100, lambda: wait("deeper than what is kept"))
    g = Größe()
    g.länge
    g.fest()
    del g
    list(delegating())
    asyncio.run(coroutine())
    sorted([1], key=lambda _: wait("called by C"))
    functools.reduce(lambda a, b: wait("called by functools"), [1, 2])
    with Manager():
        raise ValueError
    exec(compile("\n\n\nwait('compiled text')", "<made up>", "exec"), {"wait": wait})
    for i in range(3):  # code objects whose addresses are used again
        space = {"wait": wait}
        exec(compile("\n" * i + f"def made_{i}():\n    wait('made {i}')\nmade_{i}()",
                     f"<made {i}>", "exec"), space)
        del space
    thread = threading.Thread(target=wait, args=("thread",))
    thread.start()
    thread.join()
    callback = ctypes.CFUNCTYPE(None)(lambda: wait("callback through C"))
    callback()


main()
json.dump(expected, sys.stdout)
