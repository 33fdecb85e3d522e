# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What can be said about an exporting object without a GPU, rule by rule (docs: R1 to R12).

Reports everything that is wrong, not only the first thing, and judges the producer: what is legal
but refused by many consumers is a note.
"""

import math
import operator
import re
from collections import namedtuple

# rule: "R1"; severity: "violation", "note"; key: of the descriptor, or "".
remark = namedtuple("remark", "rule severity key text")

KEYS = {"shape", "typestr", "data", "version", "strides", "descr", "mask", "stream"}
TYPESTR = re.compile(r"([<>|])([tbiufcmMOSUV])([0-9]+)(\[[0-9A-Za-z/]+\])?")
SIZES = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (2, 4, 8, 16),
    "c": (4, 8, 16, 32),
    "m": (8,),
    "M": (8,),
}
_ABSENT = object()


def is_int(value):
    """An int, or an integer object such as numpy.int64; no bool."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


class judge:
    """Reads one descriptor; `remarks` is the result. `shape`, `itemsize`, `pointer`, `stream` and
    `version` hold what was understood, else None."""

    def __init__(self, prefix=""):
        self.prefix = prefix
        self.remarks = []
        self.shape = self.itemsize = self.pointer = self.stream = self.version = None
        self.readonly = None
        self.strides = None

    def wrong(self, rule, key, text):
        self.remarks.append(remark(rule, "violation", self.prefix + key, text))

    def note(self, rule, key, text):
        self.remarks.append(remark(rule, "note", self.prefix + key, text))

    def of_object(self, owner):
        """Reads the attribute twice, for getters that change their mind; judges the first."""
        try:
            first = owner.__cuda_array_interface__
        except AttributeError as problem:
            self.wrong("R1", "", f"no __cuda_array_interface__: {problem}")
            return
        self.of_dict(first)
        try:
            second = owner.__cuda_array_interface__
        except Exception as problem:  # whatever a second reading does is the producer's
            self.note("R1", "", f"a second reading raised {type(problem).__name__}: {problem}")
            return
        if isinstance(first, dict) and isinstance(second, dict):
            for key in sorted(KEYS - {"mask", "stream"}):
                if first.get(key) != second.get(key):
                    self.note("R1", key, "differs when it is read again")

    def of_dict(self, given):
        if not isinstance(given, dict):
            self.wrong("R1", "", f"the attribute holds {type(given).__name__}, not a dict")
            return
        for key in ("shape", "typestr", "data", "version"):
            if key not in given:
                self.wrong("R1", key, "is missing")
        for key in sorted(set(given) - KEYS, key=str):
            self.note("R1", str(key), "is no key of the interface; consumers ignore it")
        self.read_version(given.get("version", _ABSENT))
        self.read_shape(given.get("shape", _ABSENT))
        self.read_typestr(given.get("typestr", _ABSENT))
        self.read_strides(given.get("strides"))
        self.read_data(given.get("data", _ABSENT))
        self.read_descr(given.get("descr"), given.get("typestr"))
        self.read_stream(given.get("stream"))
        self.read_mask(given.get("mask"))

    def size(self):
        return None if self.shape is None else math.prod(self.shape)

    def read_version(self, value):
        if value is _ABSENT:
            return
        if not is_int(value):
            self.wrong("R6", "version", f"is {value!r}, not an int")
        elif value < 0:
            self.wrong("R6", "version", f"is {value}")
        else:
            self.version = operator.index(value)
            if self.version > 3:
                self.note("R6", "version", f"is {value}; many consumers refuse more than 3")
            elif self.version < 3:
                self.note("R25", "version", f"is {value}: it cannot say which stream to wait for")

    def read_shape(self, value):
        if value is _ABSENT:
            return
        if not isinstance(value, tuple):
            self.wrong("R2", "shape", f"is a {type(value).__name__}, not a tuple")
            return
        for index, item in enumerate(value):
            if not is_int(item):
                self.wrong("R2", f"shape[{index}]", f"is {item!r}, not an int")
            elif item < 0:
                self.wrong("R2", f"shape[{index}]", f"is negative ({item})")
        if len(value) > 64:
            self.wrong("R2", "shape", f"has {len(value)} dimensions; NumPy's limit is 64")
        elif all(is_int(item) and item >= 0 for item in value):
            self.shape = tuple(map(operator.index, value))

    def read_typestr(self, value):
        if value is _ABSENT:
            return
        if not isinstance(value, str):
            self.wrong("R3", "typestr", f"is a {type(value).__name__}, not a str")
            return
        match = TYPESTR.fullmatch(value) if value.isascii() else None
        if not match:
            self.wrong("R3", "typestr", f"{value!r} is no array-interface type string")
            return
        order, kind, digits, _unit = match.groups()
        size = int(digits) if len(digits) < 12 else -1
        if kind == "O":
            self.wrong("R3", "typestr", "object pointers mean nothing on a device")
        elif size <= 0 or (kind in SIZES and size not in SIZES[kind]):
            self.wrong("R3", "typestr", f"{value!r} has an impossible item size")
        else:
            self.itemsize = size * 4 if kind == "U" else size
            if kind == "t":
                self.itemsize = None
                self.note("R3", "typestr", "bits are known to few consumers")
            if order == "|" and kind in "iufcmM" and size > 1:
                self.wrong("R3", "typestr", f"{value!r} lacks the byte order")
            if order == ">" and size > 1:
                self.note("R3", "typestr", "big-endian data are refused by most consumers")
            if (kind, size) in (("f", 16), ("c", 4), ("c", 32)):
                self.note("R3", "typestr", f"no device type behind {value!r}")

    def read_strides(self, value):
        if value is None:
            return
        if not isinstance(value, tuple):
            self.wrong("R7", "strides", f"is a {type(value).__name__}, not a tuple or None")
            return
        if self.size() == 0:
            return
        if not all(map(is_int, value)):
            self.wrong("R7", "strides", f"{value!r} are not all int")
        elif self.shape is not None and len(value) != len(self.shape):
            self.wrong("R7", "strides", f"{len(value)} strides for {len(self.shape)} dimensions")
        else:
            self.strides = tuple(map(operator.index, value))
            if self.version is not None and self.version >= 2 and self.is_c_contiguous():
                self.note(
                    "R7", "strides", "the array is C-contiguous: None or no entry is expected"
                )
        if self.shape and self.itemsize and self.strides:
            reach = sum(abs(step) * (n - 1) for step, n in zip(self.strides, self.shape))
            if reach + self.itemsize >= 2**63:
                self.wrong("R7", "strides", "the extent does not fit in 63 bits")

    def is_c_contiguous(self):
        if self.shape is None or self.itemsize is None:
            return False
        step = self.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides or ())):
            if n != 1 and stride != step:
                return False
            step *= n
        return True

    def read_data(self, value):
        if self.itemsize and self.size() is not None and self.size() * self.itemsize >= 2**63:
            self.wrong("R2", "shape", "the number of bytes does not fit in 63 bits")
        if value is _ABSENT:
            return
        if not isinstance(value, tuple):
            self.wrong("R4", "data", f"is a {type(value).__name__}, not a tuple")
            return
        if len(value) != 2:
            self.wrong("R4", "data", f"has {len(value)} entries, not 2")
            return
        pointer, self.readonly = value
        if not isinstance(self.readonly, bool):
            self.wrong("R4", "data[1]", f"is {self.readonly!r}, not a bool")
        empty = self.size() == 0
        if not is_int(pointer):
            self.wrong("R5" if empty else "R4", "data[0]", f"is {pointer!r}, not an int")
        elif not 0 <= pointer < 2**64:
            self.wrong("R4", "data[0]", f"{pointer} is no address")
        elif pointer == 0 and self.size():
            self.wrong("R4", "data[0]", "is 0 although the array has elements")
        elif pointer != 0 and empty and self.version is not None and self.version >= 2:
            self.wrong("R5", "data[0]", "is not 0 although the array is empty")
        else:
            self.pointer = operator.index(pointer)
            if self.itemsize in (2, 4, 8, 16) and pointer % min(self.itemsize, 8):
                self.note("R4", "data[0]", "is not aligned to the item size")

    def read_descr(self, value, typestr):
        if value is None:
            return
        try:
            total = descr_size(value)
        except ValueError as problem:
            self.wrong("R8", "descr", str(problem))
            return
        if self.itemsize is not None and total != self.itemsize:
            self.wrong(
                "R8", "descr", f"describes {total} bytes, typestr {typestr!r} says otherwise"
            )

    def read_stream(self, value):
        if value is None:
            return
        if not is_int(value):
            self.wrong("R12", "stream", f"is {value!r}, not an int or None")
        elif value == 0:
            self.wrong(
                "R11",
                "stream",
                "is 0, which cannot tell 1 (legacy default stream) from 2 "
                "(per-thread default stream)",
            )
        elif not 0 < value < 2**64:
            self.wrong("R12", "stream", f"{value} is no stream")
        else:
            self.stream = operator.index(value)
            if 2 < self.stream < 4096:
                self.note("R12", "stream", f"{value} is hardly a stream handle")

    def read_mask(self, value):
        if value is None:
            return
        if self.version == 0:
            self.note("R9", "mask", "there are no masks in version 0")
        inner = judge(self.prefix + "mask.")
        try:
            given = value.__cuda_array_interface__
        except AttributeError:
            self.wrong("R9", "mask", "does not expose the interface itself")
            return
        if isinstance(given, dict) and given.get("mask") is not None:
            self.wrong("R9", "mask", "has a mask itself")
            given = {key: item for key, item in given.items() if key != "mask"}
        inner.of_dict(given)
        self.remarks += inner.remarks
        if self.shape is not None and inner.shape is not None:
            padded = (1,) * (len(self.shape) - len(inner.shape)) + inner.shape
            if len(padded) != len(self.shape) or any(
                m not in (1, n) for m, n in zip(padded, self.shape)
            ):
                self.wrong("R9", "mask", f"{inner.shape} does not broadcast to {self.shape}")


def descr_size(descr, depth=0):
    """Bytes of one item; ValueError for what is no descr."""
    if not isinstance(descr, list) or depth > 8:
        raise ValueError("is no list of fields")
    total = 0
    for field in descr:
        if not isinstance(field, tuple) or len(field) not in (2, 3):
            raise ValueError(f"{field!r} is no (name, type[, shape])")
        if isinstance(field[1], list):
            size = descr_size(field[1], depth + 1)
        else:
            match = TYPESTR.fullmatch(field[1]) if isinstance(field[1], str) else None
            if not match:
                raise ValueError(f"{field[1]!r} is no type string")
            size = int(match[3]) * (4 if match[2] == "U" else 1)
        total += size * (math.prod(field[2]) if len(field) == 3 else 1)
    return total


def check(owner):
    """The judge of an object's __cuda_array_interface__."""
    result = judge()
    result.of_object(owner)
    return result
