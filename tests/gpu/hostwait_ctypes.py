# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The policy table of include/hostwait/hostwait.h by ctypes: what the proofs need of it."""

import contextlib
import ctypes

ALLOW, LOG, FAIL, ERROR, ABORT, TRAP = range(6)
EXPLICIT, SYNC, ALL = 0x7, 0x3F, 0x7FF


class Finding(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("action", ctypes.c_int),
                ("verdict", ctypes.c_int32), ("call", ctypes.c_char_p), ("label", ctypes.c_char_p),
                ("id", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("ns", ctypes.c_uint64),
                ("thread_id", ctypes.c_uint64)]


class Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in
        ("calls", "waited", "latent", "refused", "held", "violations", "allowed",
         "mismatched_pops", "waited_ns")]


class Table(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32), ("version", ctypes.c_uint32),
        ("push", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_char_p,
                                  ctypes.c_int)),
        ("pop", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)),
        ("set_callback", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("step", ctypes.CFUNCTYPE(None)),
        ("steady", ctypes.CFUNCTYPE(None)),
        ("stats_get", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stats))),
        ("last_refused", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Finding))),
        ("set_paused", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)),
    ]


def _find():
    try:
        symbol = ctypes.POINTER(Table).in_dll(ctypes.CDLL(None), "hostwait_api")
    except ValueError:
        return None
    return symbol.contents if symbol else None


table = _find()


def present():
    return table is not None


@contextlib.contextmanager
def guard(action, kinds=SYNC, label=None, process=False):
    """A frame of this thread, or of the process, for the length of a with block."""
    token = table.push(action, kinds, label.encode() if label else None, int(process))
    if token <= 0:
        raise RuntimeError(f"push: {token}")
    try:
        yield
    finally:
        if table.pop(token, int(process)) != 0:
            raise RuntimeError("pop: not the frame on top")


def stats():
    filled = Stats(size=ctypes.sizeof(Stats))
    if table.stats_get(ctypes.byref(filled)) != 0:
        raise RuntimeError("no statistics")
    return filled


def last_refused():
    filled = Finding(size=ctypes.sizeof(Finding))
    return filled if table.last_refused(ctypes.byref(filled)) == 0 else None
