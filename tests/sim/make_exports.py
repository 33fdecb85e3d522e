#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Write exports.def: every cu* export of the toolkit's stub with its look-up name and version.

make_exports.py STUB cudaTypedefs.h cudaProfilerTypedefs.h > exports.def

The N-th version of a name in the PFN_<name>_v<version> typedefs is the N-th of the exports
<name>, <name>_v2, <name>_v3 …, for the plain, the _ptds and the _ptsz family each.
"""
import collections
import re
import subprocess
import sys


def main(stub, *typedefs):
    versions = collections.defaultdict(set)
    for path in typedefs:
        with open(path, encoding="utf-8") as text:
            found = re.findall(r"CUDAAPI \*(PFN_(cu\w+?)_v(\d+)(_pt[ds][sz])?)\)", text.read())
        for _, base, version, family in found:
            versions[base, family].add(int(version))
    listing = subprocess.run(["nm", "-D", "--defined-only", stub], check=True,
                             capture_output=True, text=True).stdout
    families = collections.defaultdict(list)
    for line in listing.splitlines():
        match = re.fullmatch(r"(cu\w+?)(?:_v(\d))?(_pt[ds][sz])?", line.split()[-1])
        if match:
            base, number, family = match.groups()
            families[base, family or ""].append((int(number or 1), match.group(0)))
    rows = []
    for key, symbols in families.items():
        known = sorted(versions[key])
        if len(known) != len(symbols):
            sys.exit(f"make_exports.py: {key[0]}{key[1]}: {known} does not fit {sorted(symbols)}")
        for version, (_, symbol) in zip(known, sorted(symbols)):
            rows.append((symbol, key[0], version, 1 if key[1] else 0))
    print("// SPDX-License-Identifier: Apache-2.0\n// Copyright The hostwait authors")
    print("// Every cu* export of the CUDA 13.0 stub: symbol, look-up name, version, per-thread.")
    print("// Made by make_exports.py; not edited by hand.")
    print("// clang-format off")
    for symbol, base, version, per_thread in sorted(rows):
        print(f"HOSTWAIT_SIM_EXPORT({symbol}, {base}, {version}, {per_thread})")


if __name__ == "__main__":
    main(*sys.argv[1:])
