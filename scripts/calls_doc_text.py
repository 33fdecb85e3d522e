# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The written part of docs/calls.md: one entry for each call that people ask about. The counts beside
them, the table of rows and the measured table are computed (generate_calls_doc.py)."""

import collections

RUNTIME = "https://docs.nvidia.com/cuda/cuda-runtime-api/"
DRIVER = "https://docs.nvidia.com/cuda/cuda-driver-api/"
GUIDE = "https://docs.nvidia.com/cuda/archive/12.9.1/cuda-c-programming-guide/index.html"
TOPICS = "https://docs.nvidia.com/cuda/cuda-programming-guide/04-special-topics/"
COPIES_PAGE = f"{DRIVER}api-sync-behavior.html"
COPIES = f"NVIDIA's page on [API synchronization behavior]({COPIES_PAGE})"
IMPLICIT = f"[implicit synchronization]({GUIDE}#implicit-synchronization)"
ALLOCATOR = f"[stream-ordered allocator]({TOPICS}stream-ordered-memory-allocation.html)"
PROHIBITED = f"The guide's [prohibited and unhandled operations]({GUIDE}#prohibited-and-unhandled-operations)"
LAZY = f"the guide on [lazy loading]({GUIDE}#lazy-loading)"
MEMORY = f"The reference on [memory management]({RUNTIME}group__CUDART__MEMORY.html)"
CONTEXT = f"The reference on [context management]({DRIVER}group__CUDA__CTX.html)"
GRAPHS = f"The reference on [graph management]({DRIVER}group__CUDA__GRAPH.html)"

# runtime, driver: names; the first runtime name is the heading (the first driver name where there is
# none). short: the cell of the overview. differs: where NVIDIA's page and the measurement part, or
# what the page leaves open; empty where they agree. reports: tests/gpu/cases.
Entry = collections.namedtuple(
    "Entry", "group runtime driver short waits not_when avoid differs reports")

ENTRIES = [
    Entry("Waiting by purpose", "cudaDeviceSynchronize", "cuCtxSynchronize", "every stream",
          "Every stream of the context, non-blocking ones too.", "Nothing is pending.",
          "Wait for the one stream or event that is needed; order streams with `cudaStreamWaitEvent`.",
          "", "RA-10 OR-03"),
    Entry("Waiting by purpose", "cudaStreamSynchronize", "cuStreamSynchronize", "its stream",
          "Its stream. For stream 0 of the legacy kind: the legacy stream and all blocking streams, no "
          "non-blocking one. In the per-thread form stream 0 is the thread's own.",
          "Nothing is pending on it.",
          "One wait where the host reads a result, not one per call; an event in place of the stream.",
          "", "OR-01 HP-01 RA-12"),
    Entry("Waiting by purpose", "cudaEventSynchronize", "cuEventSynchronize", "the work before the event",
          "The work before the event's last record.", "The event was never recorded, or has come.",
          "`cudaStreamWaitEvent` where a stream, not the host, needs the order.", "", "PT-21 LL-01"),
    Entry("Waiting by purpose", "cudaStreamQuery cudaEventQuery cudaEventElapsedTime",
          "cuStreamQuery cuEventQuery cuEventElapsedTime", "nothing; breaks captures",
          "Nothing.", "Always. A loop of them is a wait all the same (kind `poll`, armed at start).",
          "In a process that captures, ask `cudaStreamIsCapturing` first.",
          f"{PROHIBITED} forbid it for captured streams; measured, a query of an unrelated stream breaks "
          "a capture in the global mode, too.", "DR-11"),
    Entry("Copies", "cudaMemcpy cudaMemcpy2D",
          "cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpy cuMemcpy2DUnaligned cuMemcpy2D cuMemcpy3D",
          "the null stream, with a host end",
          "The null stream, where one end is host memory of any kind: so all blocking streams. An upload "
          f"from ordinary memory returns when it is staged ({COPIES}): its data may still be under way.",
          "Device to device; while only non-blocking streams are busy; no bytes.",
          "`cudaMemcpyAsync` on the stream that made the data, pinned memory at the host end, one wait.",
          "", "PT-30 CP-04 NB-01"),
    Entry("Copies", "cudaMemcpyAsync cudaMemcpy2DAsync",
          "cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyAsync cuMemcpyDtoDAsync cuMemcpy2DAsync "
          "cuMemcpy3DAsync",
          "its stream, by memory ([matrix](#copies-by-memory))",
          "Its stream: into ordinary memory at every size, 4 bytes included; between two host buffers of "
          "any kind; from ordinary memory above 2 MiB in one copy (2,097,152 bytes pass, one more "
          "waits), or sooner when staging is full (the third above 64 KiB, the 64th of 64 KiB).",
          "Pinned memory and device memory at the ends; in a capture.",
          "Pinned memory at the host end, both ways.",
          f"{COPIES} says that a copy with ordinary memory *might* be synchronous. Measured, downloads "
          "always are, single uploads only above 2 MiB. Managed memory, fully synchronous in the editions of "
          "CUDA 9.2 to 11.1, is not mentioned in that of 12.2 and later: measured, it waits, except under "
          "`cudaMemcpyDefault` (`cuMemcpyAsync`).",
          "PT-06 OR-06 RA-03 CP-01"),
    Entry("Copies", "cudaMemcpyPeer", "cuMemcpyPeer cuMemcpy3DPeer cuMemcpyPeerAsync cuMemcpy3DPeerAsync",
          "nothing, within one device", "Nothing, within one device.",
          "Always in one context; between two devices it did not either, but the verdict is `depends`.", "", "", ""),
    Entry("Memsets", "cudaMemset cudaMemset2D", "cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 "
          "cuMemsetD2D16 cuMemsetD2D32", "the null stream, on pinned and managed memory",
          "The null stream, on pinned and managed memory.",
          "Device memory: the name has no Async, and the host goes on.",
          "`cudaMemsetAsync`, which did not wait on any memory.",
          f"{COPIES} names pinned memory as the exception; managed memory, which the edition of CUDA 11.1 "
          "named too, still waits (measured).", "HP-05"),
    Entry("Memory", "cudaFree", "cuMemFree", "every stream",
          "Every stream of the context, non-blocking ones too, at every size tried. Other threads' "
          "launches, copies and allocations are held up meanwhile (26 ms of 30 measured).",
          "Memory of `cudaMallocAsync` and pools; a null pointer.",
          "Keep and reuse memory; `cudaMallocAsync` and `cudaFreeAsync`.",
          f"{MEMORY} says that it *may* synchronize for ordinary memory; the guide's chapter on the "
          f"{ALLOCATOR} says that it makes the GPU synchronize across all streams. Measured, the host waits for all of "
          "them, on this driver.", "DR-01 HP-03 TH-02 PT-09"),
    Entry("Memory", "cudaFreeHost cudaHostUnregister", "cuMemFreeHost cuMemHostUnregister", "every stream",
          "Every stream of the context, non-blocking ones too.", "A null pointer.",
          "Pin once and keep the buffer.",
          f"{MEMORY} says nothing of it.", "PT-12"),
    Entry("Memory", "cudaMalloc cudaMallocHost cudaHostAlloc cudaHostRegister cudaMallocManaged "
          "cudaMallocAsync",
          "cuMemAlloc cuMemHostAlloc cuMemAllocHost cuMemHostRegister cuMemAllocManaged cuMemAllocAsync "
          "cuMemAllocPitch", "nothing", "Nothing. They take their own time and can be "
          "held up by another thread's free or module load (26 ms of 30 measured).",
          "Always, but for the set-up at first use.", "",
          f"The guide's chapter on the {ALLOCATOR} says that `cudaMalloc` makes the GPU synchronize across "
          "all streams, and older editions (CUDA 9) listed allocations of pinned and of device memory "
          f"under {IMPLICIT}, where that of 12.9 names the null stream only. Measured, none of them "
          "stopped the host.", "DR-01"),
    Entry("Memory", "cudaFreeAsync cudaMemPoolTrimTo", "cuMemFreeAsync cuMemPoolTrimTo", "nothing",
          "Nothing.", "Always.", "", "", "TH-03"),
    Entry("Memory", "cudaFreeArray cudaFreeMipmappedArray", "cuArrayDestroy cuMipmappedArrayDestroy",
          "every stream", "Every stream of the context.", "A null pointer.", "Keep arrays.",
          f"{MEMORY} says nothing of it.", ""),
    Entry("Memory", "", "cuMemUnmap cuMemMap cuMemSetAccess cuMemRelease cuMemAddressFree", "nothing",
          "Nothing: virtual memory can be mapped and unmapped beside running kernels.", "Always.", "",
          "NVIDIA's header marks `cuMemUnmap` and `cuMemSetAccess` as synchronous; measured, neither "
          "stopped the host.", ""),
    Entry("Code and contexts", "", "cuModuleLoadData cuModuleUnload cuModuleLoad cuModuleLoadFatBinary "
          "cuLibraryUnload",
          "every stream", "Every stream of the context; other threads' launches and pinned copies are held "
          "up meanwhile (26 ms of 30 measured).", "Nothing is pending.",
          "Load before the work starts.", f"T{LAZY[1:]} warns that loading kernels *may* synchronize; "
          "unloading is not mentioned. Measured, both do.", "DR-05"),
    Entry("Code and contexts", "cudaLaunchKernel cudaLaunchKernelExC", "cuLaunchKernel cuLaunchKernelEx",
          "nothing, until the queue is full",
          "Its stream when the queue is full: the 1,022nd launch on a busy stream (asynchronous memsets and "
          "pinned copies the same). Every stream at the "
          "first launch of a kernel that needs a bigger local-memory stack. Its stream always under "
          "`CUDA_LAUNCH_BLOCKING=1`.", "Room is left; in a capture.",
          "Touch kernels before the work starts (`CUDA_MODULE_LOADING=EAGER`); keep queues short.",
          "The depth of the queue is not documented. The first launch of a small kernel did not wait.",
          "DR-13 DR-02"),
    Entry("Code and contexts", "cudaLibraryLoadData cudaLibraryGetKernel cudaFuncGetAttributes",
          "cuLibraryLoadData cuLibraryGetKernel cuKernelGetFunction cuFuncGetAttribute cuModuleGetFunction",
          "every stream, at first use", f"Every stream at first use, when something is loaded ({LAZY}).",
          "It is loaded already.", "As for launches.", "", ""),
    Entry("Code and contexts", "cudaDeviceSetLimit", "cuCtxSetLimit", "every stream, for the stack size",
          "Every stream, for the stack size.", "The printf buffer, the heap, L2 fetch.",
          "Set limits before the first launch.",
          f"{CONTEXT} speaks of the device waiting; measured, the host waits, too.", ""),
    Entry("Code and contexts", "cudaDeviceReset", "cuDevicePrimaryCtxReset cuCtxDestroy cuGreenCtxCreate",
          "every stream", "Every stream of the context.", "", "At the end only.",
          "`cuGreenCtxCreate`, which makes something new, waits too (measured).", ""),
    Entry("Streams and graphs", "cudaStreamCreate cudaStreamDestroy cudaEventCreate cudaEventDestroy",
          "cuStreamCreate cuStreamDestroy cuEventCreate cuEventDestroy", "nothing",
          "Nothing, also with work pending.", "Always.", "", "", "DR-07"),
    Entry("Streams and graphs", "cudaEventRecord cudaStreamWaitEvent cudaLaunchHostFunc",
          "cuEventRecord cuStreamWaitEvent cuLaunchHostFunc", "nothing",
          "Nothing: 5,000 in a row behind a running kernel did not fill the queue.", "Always.",
          "", "", "CV-06 JX-04"),
    Entry("Streams and graphs", "cudaGraphLaunch", "cuGraphLaunch", "nothing, but for pageable copies in it",
          "Its stream, where the graph copies into ordinary memory.",
          "Otherwise; 5,000 launches in a row of a small graph did not fill the queue.",
          "Pinned memory in graphs.",
          f"{GRAPHS} says nothing of it.", "OR-02"),
    Entry("Streams and graphs", "cudaGraphInstantiate cudaGraphExecUpdate",
          "cuGraphInstantiateWithFlags cuGraphExecUpdate cuGraphExecDestroy", "nothing", "Nothing, also "
          "while the graph runs.", "Always.", "", "", ""),
]
