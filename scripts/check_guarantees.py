#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""check_guarantees.py [BUILD]: every test that docs/guarantees.md names must be one of BUILD's CTest
tests (default: build), and every row of its tables must name one. Status 1 where not."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "guarantees.md"


def known_tests(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True)
    names = set(re.findall(r"^ *Test +#\d+: (\S+)", listed.stdout, re.MULTILINE))
    if not names:
        sys.exit(f"{build}: no CTest test there; run scripts/test.sh first")
    return names


def main():
    known = known_tests(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build"))
    bad = rows = 0
    for number, line in enumerate(DOCUMENT.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 2:
            print(f"docs/guarantees.md:{number}: a row has two cells; this one has {len(cells)}")
            bad += 1
            continue
        if cells[1] in ("held by", "---"):
            continue
        rows += 1
        named = re.findall(r"`([^`]+)`", cells[1])
        missing = [name for name in named if name not in known]
        for name in missing:
            print(f"docs/guarantees.md:{number}: no test is called {name}")
        if not named:
            print(f"docs/guarantees.md:{number}: no test is named")
        bad += bool(missing) or not named
    if rows == 0:
        sys.exit("docs/guarantees.md: no table row was understood")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
