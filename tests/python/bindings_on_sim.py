# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""NVIDIA's cuda-bindings as a client of the simulated driver: waits, copies and frees.

Run with LD_LIBRARY_PATH=<build>/lib/sim. Prints one line per step and ends with the number of
steps whose answer was not the expected one. With --refused it expects the waits and copies to
be answered CUDA_ERROR_NOT_PERMITTED, as under a hostwait policy of `error`.
"""
import ctypes
import sys

from cuda.bindings import driver

SIZE = 1 << 16
refused = "--refused" in sys.argv[1:]
unexpected = 0


def step(name, answer, waits=False):
    """Prints what the call answered and returns its value, if it has one."""
    global unexpected
    code = answer[0]
    wanted = (driver.CUresult.CUDA_ERROR_NOT_PERMITTED if waits and refused
              else driver.CUresult.CUDA_SUCCESS)
    unexpected += code != wanted
    print(f"{name}: {code.name}")
    values = answer[1:]
    if values and code == driver.CUresult.CUDA_SUCCESS:
        print("  =", ", ".join(str(value) for value in values))
    return values[0] if len(values) == 1 else values


def main():
    global unexpected
    simulated = hasattr(ctypes.CDLL("libcuda.so.1"), "hostwait_sim_present")
    print("simulated driver:", "yes" if simulated else "no")
    if not simulated:
        sys.exit("bindings_on_sim.py: this is not the simulated driver; set LD_LIBRARY_PATH")

    step("cuInit", driver.cuInit(0))
    step("cuDriverGetVersion", driver.cuDriverGetVersion())
    device = step("cuDeviceGet", driver.cuDeviceGet(0))
    step("cuDeviceGetName", driver.cuDeviceGetName(64, device))
    context = step("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(device))
    step("cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    stream = step("cuStreamCreate",
                  driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    event = step("cuEventCreate", driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))
    memory = step("cuMemAlloc", driver.cuMemAlloc(SIZE))
    pinned = step("cuMemHostAlloc", driver.cuMemHostAlloc(SIZE, 0))

    source = ctypes.create_string_buffer(bytes(range(256)) * (SIZE // 256), SIZE)
    result = ctypes.create_string_buffer(SIZE)
    step("cuMemcpyHtoDAsync", driver.cuMemcpyHtoDAsync(memory, ctypes.addressof(source), SIZE,
                                                       stream))
    step("cuEventRecord", driver.cuEventRecord(event, stream))
    step("cuEventSynchronize", driver.cuEventSynchronize(event), waits=True)
    step("cuStreamSynchronize", driver.cuStreamSynchronize(stream), waits=True)
    step("cuMemcpyDtoHAsync (pageable)",
         driver.cuMemcpyDtoHAsync(ctypes.addressof(result), memory, SIZE, stream), waits=True)
    step("cuMemcpyDtoH", driver.cuMemcpyDtoH(ctypes.addressof(result), memory, SIZE), waits=True)
    same = result.raw == source.raw
    print("bytes came back:", "yes" if same else "no")
    unexpected += same == refused
    step("cuMemcpyDtoHAsync (pinned)", driver.cuMemcpyDtoHAsync(pinned, memory, SIZE, stream))
    step("cuCtxSynchronize", driver.cuCtxSynchronize(), waits=True)
    step("cuStreamQuery", driver.cuStreamQuery(stream))

    step("cuMemFreeHost", driver.cuMemFreeHost(pinned))
    step("cuMemFree", driver.cuMemFree(memory))
    step("cuEventDestroy", driver.cuEventDestroy(event))
    step("cuStreamDestroy", driver.cuStreamDestroy(stream))
    step("cuDevicePrimaryCtxRelease", driver.cuDevicePrimaryCtxRelease(device))
    print("unexpected answers:", unexpected)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
