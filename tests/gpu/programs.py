# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Builds the programs of the proofs with nvcc and g++, all at once."""

import concurrent.futures
import glob
import os
import pathlib
import shutil
import sys
import sysconfig

from harness import REPO

HERE = pathlib.Path(__file__).resolve().parent

# How the one route program is built: name -> (nvcc options before, after the source).
ROUTES = {
    "static": (["-cudart", "static"], []),
    "shared": (["-cudart", "shared"], []),
    "per_thread": (["-default-stream", "per-thread", "-x", "cu"], []),
    "linked": (["-cudart", "none", "-DHOSTWAIT_ROUTE_DRIVER"], ["-lcuda"]),
    "dlopen": (["-cudart", "none", "-DHOSTWAIT_ROUTE_DLOPEN"], ["-ldl"]),
}


def toolkit():
    """The folder of nvcc's toolkit, or None."""
    for name in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if name and (pathlib.Path(name) / "bin" / "nvcc").exists():
            return pathlib.Path(name)
    found = shutil.which("nvcc")
    return pathlib.Path(found).resolve().parent.parent if found else None


def find_file(*patterns):
    """The first file that one of the patterns names, in the toolkit or in Python's CUDA wheels."""
    roots = [root for root in (toolkit(), ) if root]
    places = sysconfig.get_paths()
    roots += [pathlib.Path(folder) for folder in
              sorted({places["purelib"], places["platlib"], *sys.path}) if folder]
    for root in roots:
        for pattern in patterns:
            hits = sorted(glob.glob(str(root / pattern)))
            if hits:
                return pathlib.Path(hits[0])
    return None


def cupti():
    """(include folder, library file) of CUPTI, or None."""
    header = find_file("include/cupti.h", "extras/CUPTI/include/cupti.h",
                       "targets/*/include/cupti.h", "nvidia/cu13/include/cupti.h",
                       "nvidia/cuda_cupti/include/cupti.h")
    library = find_file("lib64/libcupti.so*", "extras/CUPTI/lib64/libcupti.so*",
                        "targets/*/lib/libcupti.so*", "nvidia/cu13/lib/libcupti.so*",
                        "nvidia/cuda_cupti/lib/libcupti.so*")
    return (header.parent, library) if header and library else None


def runtimes():
    """{"11.0": file, "12": file, "13": file}: the shared runtimes of the CUDA user-spaces that are
    here: carried (scripts/gpu.sh carry), in the toolkit, or in Python's wheels."""
    made = {}
    for version in ("11.0", "12", "13"):
        name = f"libcudart.so.{version}"
        carried = REPO / "build-carry" / "cudart" / name
        file = carried if carried.exists() else find_file(
            f"lib64/{name}", f"targets/*/lib/{name}", f"nvidia/cu13/lib/{name}",
            f"nvidia/cuda_runtime/lib/{name}")
        if file:
            made[version] = file
    return made


def library_arguments(*names):
    """nvcc's arguments that link these libraries, wherever they are; found again at run time."""
    made = []
    for name in names:
        file = find_file(f"lib64/lib{name}.so", f"targets/*/lib/lib{name}.so",
                         f"lib64/lib{name}.so.*", f"nvidia/cu13/lib/lib{name}.so.*",
                         f"nvidia/{name}/lib/lib{name}.so.*")
        made += [str(file), "-Xlinker", f"-rpath={file.parent}"] if file else [f"-l{name}"]
    return made


def driver_library():
    """What -lcuda stands for: the toolkit's stub, else the driver itself."""
    stub = find_file("lib64/stubs/libcuda.so", "targets/*/lib/stubs/libcuda.so")
    if stub:
        return [f"-L{stub.parent}", "-lcuda"]
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), "/usr/lib/x86_64-linux-gnu",
               "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"]
    for folder in filter(None, folders):
        if (pathlib.Path(folder) / "libcuda.so.1").exists():
            return [str(pathlib.Path(folder) / "libcuda.so.1")]
    return ["-lcuda"]


def commands(session):
    """{program file: command}."""
    root = toolkit()
    nvcc = root / "bin" / "nvcc"
    common = [str(nvcc), "-std=c++20", "-O2", "-g", f"-I{REPO / 'include'}"]
    headers = find_file("include/cublas_v2.h", "targets/*/include/cublas_v2.h",
                        "nvidia/cu13/include/cublas_v2.h")
    arch = os.environ.get("HOSTWAIT_GPU_ARCH", "native")
    made = {}
    for name, (before, after) in ROUTES.items():
        after = [part for one in after
                 for part in (driver_library() if one == "-lcuda" else [one])]
        made[f"routes_{name}"] = [*common, *before, str(HERE / "routes" / "routes.cpp"), *after]
    made["libraries"] = [*common, *([] if arch == "none" else [f"-arch={arch}"]),
                         *([f"-I{headers.parent}"] if headers else []),
                         str(HERE / "libraries" / "libraries.cu"),
                         *library_arguments("cublas", "cusolver")]
    made["runtimes"] = ["g++", "-std=c++20", "-O2", "-g", "-Wall", "-Wextra",
                        f"-I{REPO / 'include'}", str(HERE / "runtimes" / "runtimes.cpp"), "-ldl"]
    made["advice"] = [*common, "-cudart", "static", str(HERE / "advice" / "advice.cpp")]
    for name in ("captures", "held"):
        made[name] = [*common, "-cudart", "none", str(HERE / name / f"{name}.cpp"), "-ldl",
                      "-lpthread"]
    made["lines"] = [str(nvcc), "-std=c++20", "-O3", "-g", str(HERE / "lines" / "lines.cpp")]
    made["ranges"] = [str(nvcc), "-std=c++20", "-O2", "-g", str(HERE / "nvtx" / "ranges.cpp"),
                      "-ldl"]
    if cupti():
        include, library = cupti()
        made["libcupti_count.so"] = [
            "g++", "-std=c++20", "-O2", "-g", "-fPIC", "-shared", "-Wall", "-Wextra",
            f"-I{include}", f"-I{root / 'include'}",
            str(HERE / "cupti_count" / "cupti_count.cpp"), str(library),
            f"-Wl,-rpath,{library.parent}", "-ldl", "-lpthread"]
    return {file: [*command, "-o", str(session.build / file)] for file, command in made.items()}


def build(session):
    """Builds what is not there yet or older than its sources. One check per program."""
    if toolkit() is None:
        session.skip("build", "no nvcc on this machine")
        return
    if cupti() is None:
        session.skip("build.libcupti_count.so", "no CUPTI header or library on this machine")
    newest = max(path.stat().st_mtime for path in HERE.rglob("*.[ch]*"))
    wanted = {file: command for file, command in commands(session).items()
              if not (session.build / file).exists()
              or (session.build / file).stat().st_mtime < newest}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        runs = {file: pool.submit(session.run, command) for file, command in wanted.items()}
    for file, future in runs.items():
        ran = future.result()
        session.check(f"build.{file}", ran.status == 0, "" if ran.status == 0 else ran.err[-400:])
