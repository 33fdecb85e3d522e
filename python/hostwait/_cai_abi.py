# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""include/hostwait/cai.h for ctypes: structs, enumerations, and where the library is found."""

import ctypes
import os
import pathlib
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_ulonglong,
    c_void_p,
)

MAX_NDIM = 64


class sized(Structure):
    """A struct that begins with its size."""

    def __init__(self, **values):
        super().__init__(**values)
        self.size = ctypes.sizeof(self)


class error(sized):
    _fields_ = [
        ("size", c_uint32),
        ("code", c_int32),
        ("driver", c_int32),
        ("index", c_int32),
        ("array", c_int32),
        ("reserved", c_int32),
        ("key", c_char_p),
        ("text", c_char * 160),
    ]


class policy(sized):
    _fields_ = [
        ("size", c_uint32),
        ("lenient", c_uint32),
        ("intent", c_uint32),
        ("options", c_uint32),
        ("device", c_int32),
        ("use_device", c_int32),
        ("sync", c_uint8),
        ("ptds", c_uint8),
        ("capture", c_uint8),
        ("from_dict", c_uint8),
        ("legacy", c_uint8 * 4),
        ("hooks", c_void_p),
    ]


class desc(sized):
    _fields_ = [
        ("size", c_uint32),
        ("version", c_int32),
        ("ndim", c_uint32),
        ("flags", c_uint32),
        ("kind", c_char),
        ("byteorder", c_char),
        ("readonly", c_uint8),
        ("stream_state", c_uint8),
        ("unit", c_char * 12),
        ("itemsize", c_uint64),
        ("count", c_uint64),
        ("nbytes", c_uint64),
        ("ptr", c_uint64),
        ("stream", c_uint64),
        ("lo", c_int64),
        ("hi", c_int64),
        ("shape", c_int64 * MAX_NDIM),
        ("strides", c_int64 * MAX_NDIM),
    ]


class loc(sized):
    _fields_ = [
        ("size", c_uint32),
        ("device", c_int32),
        ("kind", c_uint32),
        ("reserved", c_uint32),
        ("ptr", c_uint64),
        ("context", c_uint64),
    ]


class ready(sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("flags", c_uint32),
        ("device", c_int32),
        ("stream", c_uint64),
        ("event", c_uint64),
        ("context", c_uint64),
        ("ptr", c_uint64),
        ("producer", c_void_p),
    ]


class edge(Structure):
    _fields_ = [("stream", c_uint64), ("context", c_uint64), ("event", c_uint64)]


class ticket(sized):
    _fields_ = [
        ("size", c_uint32),
        ("state", c_uint16),
        ("flags", c_uint16),
        ("count", c_uint32),
        ("thread", c_uint32),
        ("consumer", c_uint64),
        ("context", c_uint64),
        ("done", c_uint64),
        ("edge", edge * 4),
        ("more", POINTER(edge)),
    ]


STATS = (
    "acquires",
    "elided",
    "ready_now",
    "waits",
    "back_edges",
    "event_waits",
    "host_waits",
    "polls",
    "opt_outs",
    "opt_outs_pending",
    "legacy_producer_current",
    "legacy_via_dlpack",
    "legacy_join",
    "legacy_device",
    "legacy_none",
    "capture_refused",
    "capture_assumed",
    "back_edges_skipped",
    "events_created",
    "retired",
    "drained",
)


class stats(sized):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32)] + [(name, c_uint64) for name in STATS]


_handle = POINTER(c_void_p)
DRIVER = {
    "ctx_get_current": (_handle,),
    "ctx_push_current": (c_void_p,),
    "ctx_pop_current": (_handle,),
    "ctx_get_device": (POINTER(c_int),),
    "ctx_get_id": (c_void_p, POINTER(c_ulonglong)),
    "ctx_synchronize": (),
    "primary_ctx_retain": (_handle, c_int),
    "stream_get_ctx": (c_void_p, _handle),
    "stream_get_flags": (c_void_p, POINTER(c_uint)),
    "stream_query": (c_void_p,),
    "stream_is_capturing": (c_void_p, POINTER(c_int)),
    "stream_get_capture_info": (
        c_void_p,
        POINTER(c_int),
        POINTER(c_uint64),
        _handle,
        POINTER(c_void_p),
        POINTER(c_size_t),
    ),
    "stream_wait_event": (c_void_p, c_void_p, c_uint),
    "event_create": (_handle, c_uint),
    "event_destroy": (c_void_p,),
    "event_record": (c_void_p, c_void_p),
    "event_query": (c_void_p,),
    "event_synchronize": (c_void_p,),
    "pointer_get_attributes": (c_uint, POINTER(c_int), POINTER(c_void_p), c_uint64),
    "device_can_access_peer": (POINTER(c_int), c_int, c_int),
    "device_get_attribute": (POINTER(c_int), c_int, c_int),
    "thread_exchange_capture_mode": (POINTER(c_int),),
    "get_error_name": (c_int, POINTER(c_char_p)),
}
DRIVER_TYPES = {name: CFUNCTYPE(c_int, *types) for name, types in DRIVER.items()}


class driver(sized):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32), *DRIVER_TYPES.items()]


LENIENT = {
    name: 1 << bit
    for bit, name in enumerate(
        (
            "list",
            "none_pointer",
            "mapping",
            "version",
            "byteorder",
            "bytes",
            "bool",
            "stream_zero",
            "cuda_stream",
            "thread",
            "null_strides",
            "reserved",
        )
    )
}
OPTIONS = {
    name: 1 << bit
    for bit, name in enumerate(
        (
            "accept_newer",
            "accept_byteorder",
            "accept_dtype",
            "accept_mask",
            "accept_bit_mask",
            "accept_pageable",
            "reject_unaligned",
            "reject_byte_strides",
            "ignore_readonly",
            "check_range",
            "check_peer",
            "check_handles",
            "trust_implicit",
            "trust_no_capture",
            "no_back_edge",
        )
    )
}
FLAGS = {
    name: 1 << bit
    for bit, name in enumerate(
        (
            "c_contiguous",
            "f_contiguous",
            "broadcast",
            "empty",
            "unaligned",
            "unknown_keys",
            "overlap",
            "byte_strides",
            "has_descr",
            "has_mask",
            "bits",
            "stream_was_zero",
            "lenient",
            "mask_before_v1",
            "implied_strides",
        )
    )
}
LEGACY = {"producer_current": 1, "via_dlpack": 2, "legacy_join": 3, "device": 4, "none": 5}
PTDS = {"trust": 0, "legacy_join": 1, "device": 2, "reject": 3}
CAPTURE = {"error": 0, "assume_ready": 1, "external_event": 2}
MEMORY = ("none", "device", "pinned", "managed", "host")
STREAM_STATES = ("absent", "none", "value")
READ, WRITE = 1, 2


def library():
    """libhostwait_cai, or None: by $HOSTWAIT_CAI_LIBRARY, beside the package, by the loader."""
    here = pathlib.Path(__file__).resolve().parent
    names = [
        os.environ.get("HOSTWAIT_CAI_LIBRARY"),
        *map(str, here.glob("libhostwait_cai.so*")),
        "libhostwait_cai.so",
    ]
    for name in filter(None, names):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.hostwait_cai_code_name.restype = c_char_p
        return found
    return None
