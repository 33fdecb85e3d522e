# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Waits under many shapes of Python stack; prints what the interpreter itself says of each.

Run under hostwait on the simulated driver. Each case is one wait under its own label; standard
output is one JSON object: label -> [[file, qualified function, line], …], innermost first.
"""
import asyncio
import contextlib
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


@contextlib.contextmanager
def forwarded():
    wait("before the body of a context manager")
    yield


async def numbers():
    for i in range(2):
        wait(f"asynchronous generator {i}")
        yield i


async def asynchronous():
    async for _ in numbers():
        wait("asynchronous for")
    await asyncio.gather(coroutine_named("first"), coroutine_named("second"))


async def coroutine_named(name):
    await asyncio.sleep(0)
    wait(f"task {name}")


def thrown():
    def receiving():
        try:
            yield
        except KeyError:
            wait("generator that was thrown into")
            yield
    g = receiving()
    next(g)
    g.throw(KeyError)


class Statement:
    def step(self, then):
        then()
        return self

    def of_several_lines(self):
        (
            self
            .step(lambda: None)
            .step(
                lambda: wait("statement of several lines"),
            )
            .step(lambda: None)
        )


def reuse_addresses():
    """Code objects of one name, file and length that take each other's place: only their lines
    differ. How often a place was taken again."""
    places = set()
    for i in range(400):
        code = compile("\n" * (i % 7) + "wait(label)\n", "<made again>", "exec")
        places.add(id(code))
        exec(code, {"wait": wait, "label": f"made again {i}"})
        del code
    return 400 - len(places)


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
    reused = reuse_addresses()
    with contextlib.suppress(ZeroDivisionError), forwarded():
        wait("inside a context manager of the library")
    asyncio.run(asynchronous())
    thrown()
    Statement().of_several_lines()
    thread = threading.Thread(target=wait, args=("thread",))
    thread.start()
    thread.join()
    callback = ctypes.CFUNCTYPE(None)(lambda: wait("callback through C"))
    callback()
    return reused


addresses_used_again = main()
json.dump({"stacks": expected, "addresses_used_again": addresses_used_again}, sys.stdout)
