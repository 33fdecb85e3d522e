#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Holds shim/calls.def and shim/never.def against the exports of libcuda's stub.

    scripts/check_table.py [--stub libcuda.so] [--update]

Fails (status 1) on a "cu" export that stands in neither file or in both, on a row that is not
exported, on a name given twice, and on an empty reason. The exports come from --stub, the
toolkit's stub where there is one, or else the stored list of the pinned toolkit; where both are at
hand they must agree. --update rewrites the stored list from the stub.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "scripts/data/stub-exports-13.0.txt"
# Entry points of the display stacks: the installed driver exports them, the stub does not.
NOT_IN_STUB = re.compile(r"cu(GL|EGL|VDPAU|Graphics(GL|EGL|VDPAU))[A-Z]")


def rows(path):
    return re.findall(r"^HW_ROW\((\w+),", path.read_text(), re.M)


def never(path):
    """name -> reason, of every HW_NEVER and HW_OPAQUE line; adjacent strings are joined as C does."""
    entries = re.findall(r'^HW_(?:NEVER|OPAQUE)\((\w+),((?:\s*"[^"]*")+)\)$', path.read_text(), re.M)
    return [(name, "".join(re.findall(r'"([^"]*)"', text))) for name, text in entries]


def stored_exports():
    lines = STORED.read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def stub_of_toolkit():
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home and (stub := Path(home) / "lib64/stubs/libcuda.so").exists():
            return stub
    return None


def exports_of(library):
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True,
                         capture_output=True, text=True).stdout
    return {name for line in out.splitlines() if (name := line.split()[-1]).startswith("cu")}


def toolkit_version(stub):
    """"13.0" from the toolkit's cuda.h beside the stub, or None."""
    header = stub.parent.parent.parent / "include/cuda.h"
    found = re.search(r"define CUDA_VERSION (\d+)", header.read_text()) if header.exists() else None
    return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}" if found else None


def problems(calls, refused, exports):
    names = [name for name, _ in refused]
    wrapped, left = set(calls), set(names)
    for where, listed in (("calls.def", calls), ("never.def", names)):
        for name in sorted({n for n in listed if listed.count(n) > 1}):
            yield f"{name} stands twice in {where}"
    for name in sorted(exports - wrapped - left):
        yield f"{name} is exported, but neither in calls.def nor in never.def"
    for name in sorted(wrapped & left):
        yield f"{name} stands in calls.def and in never.def"
    for name in sorted(wrapped - exports):
        yield f"{name} of calls.def is not exported"
    for name in sorted(left - exports):
        if not NOT_IN_STUB.match(name):
            yield f"{name} of never.def is not exported"
    for name, reason in refused:
        if len(reason) < 10:
            yield f"{name} of never.def needs a reason"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stub", type=Path, help="a libcuda.so to read the exports from")
    parser.add_argument("--calls", type=Path, default=ROOT / "shim/calls.def")
    parser.add_argument("--never", type=Path, default=ROOT / "shim/never.def")
    parser.add_argument("--update", action="store_true", help="rewrite the stored list")
    options = parser.parse_args()

    stub = options.stub or stub_of_toolkit()
    if not shutil.which("nm"):
        stub = None
    found = []
    if stub:
        exports, source = exports_of(stub), str(stub)
        if options.update:
            head = STORED.read_text().splitlines()[0]
            STORED.write_text("\n".join([head, *sorted(exports)]) + "\n")
        if toolkit_version(Path(stub)) == "13.0" and exports != stored_exports():
            name = STORED.relative_to(ROOT)
            found.append(f"{name} is not what {stub} exports: run with --update")
    else:
        exports, source = stored_exports(), str(STORED.relative_to(ROOT))
    calls, refused = rows(options.calls), never(options.never)
    found += problems(calls, refused, exports)
    for line in found:
        print(f"check_table: {line}", file=sys.stderr)
    print(f"check_table: {len(exports)} exports of {source}, {len(calls)} rows, "
          f"{len(refused)} left alone, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
