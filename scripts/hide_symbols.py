#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""hide_symbols.py LIBRARY NAME…: makes defined dynamic symbols of a 64-bit little-endian ELF file
hidden, in place. No linker or objcopy does that: they drop hidden symbols from the table, and
shim/musl.S needs them there. Status 1 when a name is not a defined dynamic symbol."""

import struct
import sys

SHT_DYNSYM = 11
SECTION = struct.Struct("<IIQQQQIIQQ")  # name type flags addr offset size link info addralign entsize
SYMBOL = struct.Struct("<IBBHQQ")  # name info other shndx value size
STV_HIDDEN = 2


def main(path, names):
    with open(path, "r+b") as file:
        data = file.read()
        if data[:6] != b"\x7fELF\x02\x01":
            return f"{path}: not a 64-bit little-endian ELF file"
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        sections = [SECTION.unpack_from(data, table + i * size) for i in range(count)]
        missing = set(names)
        for section in sections:
            if section[1] != SHT_DYNSYM:
                continue
            strings = sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], SYMBOL.size):
                name, info, other, where, value, length = SYMBOL.unpack_from(data, at)
                end = data.index(b"\0", strings + name)
                text = data[strings + name : end].decode()
                if text in names and where != 0:
                    file.seek(at)
                    file.write(SYMBOL.pack(name, info, other & ~3 | STV_HIDDEN, where, value, length))
                    missing.discard(text)
    return f"{path}: no such dynamic symbol: {' '.join(sorted(missing))}" if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else __doc__)
