# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Workers of Python's multiprocessing: multiprocess.py fork|spawn|forkserver. Two of four workers call
the driver; the parent does, before and after."""

import ctypes
import multiprocessing
import sys


def wait():
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    driver.cuCtxSynchronize()


def work(number):
    if number % 2 == 0:
        wait()
    return number * number


def one(number, queue):
    queue.put(work(number))


def main():
    method = multiprocessing.get_context(sys.argv[1])
    wait()
    queue = method.SimpleQueue()
    workers = [method.Process(target=one, args=(number, queue)) for number in range(4)]
    for worker in workers:
        worker.start()
    print(sorted(queue.get() for _ in workers))
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
    wait()


if __name__ == "__main__":
    main()
