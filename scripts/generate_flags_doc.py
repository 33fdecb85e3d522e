#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Writes docs/flags.md from shim/options.def; with --check, fails where it is not up to date."""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "shim" / "options.def"
TARGET = ROOT / "docs" / "flags.md"

# HW_OPTION(key, type, default, "help" "more help"): help is one C string, or several in a row.
OPTION = re.compile(
    r"^HW_OPTION\(\s*(?P<key>\w+)\s*,\s*(?P<type>[^,]+?)\s*,\s*(?P<default>(?:\"(?:\\.|[^\"\\])*\"|[^,\"])*?)"
    r"\s*,\s*(?P<help>(?:\"(?:\\.|[^\"\\])*\"\s*)+)\)",
    re.MULTILINE,
)
STRING = re.compile(r"\"((?:\\.|[^\"\\])*)\"")

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Copyright The hostwait authors -->
<!-- Generated from shim/options.def by scripts/generate_flags_doc.py: change that file. -->

# Options

`HOSTWAIT_OPTIONS` holds `key=value` pairs joined by `:`. Inside a value, `\\:` is a colon and `\\\\` a
backslash. `HOSTWAIT_OPTIONS=help=1` lists the keys of the version at hand. The same keys are flags of
`hostwait run`: `threshold_us=50` is `--threshold-us 50`; a flag wins over the variable.

A wrong option ends `hostwait run` with status 2 before the program starts. Under a bare `LD_PRELOAD` it
gives one line on stderr, the record is marked, and `hostwait check` fails with 2.

| key | value | default | what it does |
|---|---|---|---|
"""

TAIL = """
`level` may be given several times; a later one wins for the kinds that it names. Kinds are those of
`include/hostwait/hostwait.h` in lower case (`device_sync`, `stream_sync`, `event_sync`, `copy`,
`async_copy`, `memset`, `free`, `host_free`, `alloc`, `module`, `context`, `queue_full`, `poll`,
`unlisted`) and the groups `explicit`, `sync` and `all`:

    HOSTWAIT_OPTIONS=level=log:level=error@copy,explicit:level=allow@free

Actions: `allow` (count only), `log` (record), `fail` (record as a violation; the call is made), `error`
(the call is not made and returns 800, not permitted), `abort` (print the finding and abort), `trap`
(SIGTRAP, then the call is made).
"""


def text_of(token):
    parts = STRING.findall(token)
    text = "".join(parts) if parts else token
    return text.replace('\\"', '"').replace("\\\\", "\\")


def cell(text):
    return text.strip().replace("|", "\\|").replace("\n", " ")


def generate():
    source = SOURCE.read_text(encoding="utf-8")
    source = re.sub(r"//[^\n]*", lambda m: "" if m.group().count('"') % 2 == 0 else m.group(), source)
    expected = len(re.findall(r"^HW_OPTION\(", source, re.MULTILINE))
    rows = list(OPTION.finditer(source))
    if not rows or len(rows) != expected:
        sys.exit(f"{SOURCE}: {expected} HW_OPTION lines, {len(rows)} understood")
    lines = []
    for row in rows:
        default = cell(text_of(row["default"]))
        lines.append(
            f"| `{row['key']}` | {cell(text_of(row['type']))} | "
            f"{f'`{default}`' if default else ''} | {cell(text_of(row['help']))} |\n"
        )
    return HEAD + "".join(lines) + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    wanted = parser.parse_args()
    document = generate()
    if not wanted.check:
        TARGET.write_text(document, encoding="utf-8")
        return 0
    if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != document:
        print(f"{TARGET.relative_to(ROOT)} is not up to date: run scripts/generate_flags_doc.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
