# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Exact counts out of a record (include/hostwait/record.h): calls per driver symbol, kind and verdict,
before the report joins, cuts or leaves out anything."""

import ctypes
import pathlib

U8, U16, U32, U64, I32 = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64,
                          ctypes.c_int32)
KINDS = ("device_sync stream_sync event_sync copy async_copy memset free host_free alloc module "
         "context queue_full poll unlisted").split()
VERDICTS = "none stream legacy context depends unmeasured".split()
CALLS, SITES, STRINGS, COUNTERS = 1, 2, 6, 8


class Extent(ctypes.Structure):
    _fields_ = [("id", U32), ("entry_size", U32), ("offset", U64), ("count", U32),
                ("capacity", U32)]


class Header(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_char * 8), ("major", U16), ("minor", U16), ("header_bytes", U32),
        ("state", U32), ("flags", U32), ("run_id", ctypes.c_char * 32), ("pid", U32),
        ("ppid", U32), ("rank", I32), ("world", I32), ("start_real_ns", U64),
        ("start_mono_ns", U64), ("end_mono_ns", U64), ("file_bytes", U64),
        ("driver_version", U32), ("dropped_sites", U32), ("program", U32), ("host", U32),
        ("options", U32), ("unseen_locks", U64), ("mismatched_pops", U64),
        ("driver_text", ctypes.c_char * 32), ("routes", ctypes.c_char * 96),
        ("why_blind", ctypes.c_char * 256), ("reserved", U64 * 16), ("extent_count", U32),
        ("max_extents", U32), ("extents", Extent * 120)]


class Call(ctypes.Structure):
    _fields_ = [("name", U32), ("kind", U16), ("row", U16)]


class Site(ctypes.Structure):
    _fields_ = [
        ("call", U32), ("verdict", U8), ("reason", U8), ("direction", U8), ("memory", U8),
        ("native", U32), ("python", U32), ("label", U32), ("range", U32), ("first_thread", U32),
        ("flags", U32), ("first_mono_ns", U64), ("bytes", U64), ("stream", U64)]


class Counters(ctypes.Structure):
    _fields_ = [
        ("thread", U32), ("site", U32), ("calls", U64), ("waited", U64),
        ("latent", U32), ("refused", U32), ("held", U32), ("violations", U32),
        ("total_ns", U64), ("max_ns", U64), ("waited_ns", U64)]


class Record:
    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        self.header = Header.from_buffer_copy(self.data)
        if self.header.magic != b"HOSTWAIT" or self.header.major != 1:
            raise ValueError(f"{path} is not a record of version 1")

    def entries(self, section, kind):
        for extent in self.header.extents[:self.header.extent_count]:
            if extent.id != section:
                continue
            for i in range(extent.count):
                at = extent.offset + i * extent.entry_size
                raw = self.data[at:at + extent.entry_size].ljust(ctypes.sizeof(kind), b"\0")
                yield kind.from_buffer_copy(raw)

    def string(self, index):
        for extent in self.header.extents[:self.header.extent_count]:
            if extent.id == STRINGS:
                if index < extent.count:
                    at = extent.offset + index
                    return self.data[at:self.data.index(b"\0", at)].decode(errors="replace")
                index -= extent.count
        return ""


def made_at_the_end(paths, within_ns=1_000_000_000):
    """{symbol: text} of the calls whose every site was first seen in the last second before the
    record was sealed, and after every copy and explicit wait of the process."""
    late, other = {}, set()
    for path in paths:
        record = Record(path)
        calls = list(record.entries(CALLS, Call))
        sites = [s for s in record.entries(SITES, Site) if s.call < len(calls)]
        work = [s.first_mono_ns for s in sites
                if KINDS[calls[s.call].kind] in ("device_sync", "stream_sync", "event_sync", "copy",
                                                 "async_copy")]
        for site in sites:
            symbol = record.string(calls[site.call].name)
            before_end = record.header.end_mono_ns - site.first_mono_ns
            if (record.header.end_mono_ns and before_end < within_ns and
                    site.first_mono_ns > max(work, default=0)):
                late[symbol] = f"first {before_end / 1e6:.1f} ms before the record was sealed"
            else:
                other.add(symbol)
    return {symbol: text for symbol, text in late.items() if symbol not in other}


def counts(paths, labels=False):
    """{(symbol, kind, verdict): {calls, waited, latent, refused, held, violations, max_ns}}; with
    labels, the label is a fourth part of the key."""
    totals = {}
    for path in paths:
        record = Record(path)
        calls = list(record.entries(CALLS, Call))
        sites = list(record.entries(SITES, Site))
        for counter in record.entries(COUNTERS, Counters):
            if counter.site >= len(sites) or sites[counter.site].call >= len(calls):
                continue
            site = sites[counter.site]
            call = calls[site.call]
            key = (record.string(call.name), KINDS[call.kind], VERDICTS[site.verdict])
            if labels:
                key += (record.string(site.label),)
            entry = totals.setdefault(key, dict(calls=0, waited=0, latent=0, refused=0, held=0,
                                                violations=0, max_ns=0))
            for name in ("calls", "waited", "latent", "refused", "held", "violations"):
                entry[name] += getattr(counter, name)
            entry["max_ns"] = max(entry["max_ns"], counter.max_ns)
    return totals
