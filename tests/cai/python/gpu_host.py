# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""A consumer without a stream, as MPI or UCX are: it polls, never stops, and reads when the data
are ready.
"""

import ctypes
import time

import proof

N = 1024
SECONDS = 0.005
TIMES = 100


def read_float(gpu, pinned, pointer, stream):
    gpu.read(pinned, pointer, 4 * N, stream)
    return ctypes.c_float.from_buffer(pinned).value


def poll(out, gpu, glue, mutant):
    memory, pinned = proof.rows(gpu, 1, N), gpu.pinned(4 * N)
    producer, transport = gpu.stream(), gpu.stream()
    wrong = polls = 0
    slowest = 0
    for turn in range(1, TIMES + 1):
        gpu.spin(producer, SECONDS)
        bits = ctypes.c_uint32.from_buffer(ctypes.c_float(turn)).value
        gpu.call(
            "cuMemsetD32Async",
            ctypes.c_uint64(memory.pointer),
            ctypes.c_uint(bits),
            ctypes.c_size_t(N),
            ctypes.c_void_p(producer),
        )
        use = glue.use("poll", 0, (glue.view(memory.row(0, producer)),), None)
        while not mutant:
            begin = time.perf_counter_ns()
            done = use.poll()
            slowest = max(slowest, time.perf_counter_ns() - begin)
            polls += 1
            if done:
                break
            time.sleep(0)
        wrong += read_float(gpu, pinned, memory.pointer, transport) != turn
        use.release()
    gpu.synchronize_all()
    if mutant:
        out.result("host.poll.mutant", wrong > 0, wrong=wrong, times=TIMES)
    else:
        # More than one poll each time: nobody waited inside the call.
        out.result(
            "host.poll",
            wrong == 0 and polls > 2 * TIMES,
            wrong=wrong,
            times=TIMES,
            polls=polls,
            slowest_poll_us=round(slowest / 1e3, 1),
        )


def wait(out, gpu, glue):
    memory, pinned = proof.rows(gpu, 1, N), gpu.pinned(4 * N)
    producer, transport = gpu.stream(), gpu.stream()
    wrong = 0
    for turn in range(1, TIMES + 1):
        gpu.spin(producer, 0.001)
        bits = ctypes.c_uint32.from_buffer(ctypes.c_float(turn)).value
        gpu.call(
            "cuMemsetD32Async",
            ctypes.c_uint64(memory.pointer),
            ctypes.c_uint(bits),
            ctypes.c_size_t(N),
            ctypes.c_void_p(producer),
        )
        glue.use("wait", 0, (glue.view(memory.row(0, producer)),), None).release()
        wrong += read_float(gpu, pinned, memory.pointer, transport) != turn
    out.result("host.wait", wrong == 0, wrong=wrong, times=TIMES)


def run(out, gpu):
    glue = proof.module("hostwait_cai_glue")
    out.attempt("host.poll", poll, out, gpu, glue, False)
    out.attempt("host.poll.mutant", poll, out, gpu, glue, True)
    out.attempt("host.wait", wait, out, gpu, glue)


if __name__ == "__main__":
    proof.script(run)
