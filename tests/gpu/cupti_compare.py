# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Holds a record's counts against those of cupti_count for another run of the same program. Every
difference is printed with its reason; one without a reason is unexplained.

Stand-alone: cupti_compare.py COUNTS.tsv RECORD.hwr…   (status 1: something is unexplained)"""

import collections
import pathlib
import re
import sys

import record

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
EXPLICIT = ("device_sync", "stream_sync", "event_sync")
# Kinds whose calls have no known cost of their own: time inside alone says nothing about waiting.
NO_OWN_COST = ("alloc", "module", "context")
# CUPTI's type of synchronization record -> the driver functions that it stands for.
SYNC_RECORDS = {"event": "cuEventSynchronize", "stream": "cuStreamSynchronize",
                "context": "cuCtxSynchronize"}


def catalogue():
    """{symbol: (row type, kind)} of calls.def, {symbol: reason} of never.def."""
    rows = {m[1]: (m[2], m[3].lower()) for m in re.finditer(
        r"^HW_ROW\((\w+),\s*(\w+),\s*(\w+),", (REPO / "shim/calls.def").read_text(), re.M)}
    never = {m[1]: " ".join(re.findall(r'"([^"]*)"', m[2])) for m in re.finditer(
        r'^HW_NEVER\((\w+),\s*((?:"[^"]*"\s*)+)\)', (REPO / "shim/never.def").read_text(), re.M)}
    return rows, never


def read_counts(paths):
    """Sums of the files that cupti_count wrote: {symbol: Counter}, {sync type: records}."""
    driver, sync = {}, collections.Counter()
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            fields = line.split("\t")
            if fields[0] == "driver":
                entry = driver.setdefault(fields[1], collections.Counter())
                entry.update(dict(zip(("calls", "over", "over_own", "ns"),
                                      map(int, fields[2:6]))))
                entry["max_ns"] = max(entry["max_ns"], int(fields[6]))
            elif fields[0] == "sync":
                sync[fields[1]] += int(fields[2])
    return driver, sync


def explain(symbol, seen, mine, rows, never):
    """(agrees, unexplained, text) for one driver function that CUPTI saw; text "" = nothing to say."""
    calls, over, over_own = seen["calls"], seen["over"], seen["over_own"]
    what = f"{symbol}: CUPTI {calls} calls, {over} over 20 us, longest {seen['max_ns'] / 1e6:.3f} ms"
    if symbol in rows:
        kind = rows[symbol][1]
        if rows[symbol][0] == "wait" and kind in EXPLICIT:
            if mine["calls"] == calls:
                return True, False, f"{what}; hostwait {mine['calls']}: same"
            return False, True, f"{what}; hostwait {mine['calls']}"
        if over == 0:
            return True, False, ""
        if kind == "poll" and mine["calls"] == 0:
            return False, False, (f"{what}; explained: a query, which never waits (kind poll, armed "
                                  "at start)")
        if rows[symbol][0] != "wait":
            return False, False, (f"{what}; explained: enqueues, never waits unless the queue is "
                                  "full or something is loaded (kind queue_full, armed at start)")
        if mine["calls"] >= over:
            return True, False, f"{what}; hostwait {mine['calls']} ({kind}): seen"
        if over_own <= mine["calls"]:
            return False, False, (f"{what}; hostwait {mine['calls']}; explained: the others stayed "
                                  "within the cost of their own bytes")
        if kind in NO_OWN_COST:
            return False, False, (f"{what}; hostwait {mine['calls']}; explained: kind {kind}, "
                                  "verdict none; its own work takes long")
        return False, True, f"{what}; {over_own} over its own cost; hostwait {mine['calls']}"
    if over == 0:
        return True, False, ""
    if symbol.startswith("cuGetProcAddress"):
        return False, False, f"{what}; explained: a look-up, which hostwait serves itself"
    if symbol in never:
        return False, False, f"{what}; explained (never.def): {never[symbol]}"
    return False, True, f"{what}; in neither calls.def nor never.def"


def compare(count_files, record_files):
    """(agreed, explained, unexplained): three lists of lines."""
    rows, never = catalogue()
    driver, sync = read_counts(count_files)
    mine = {}
    for (symbol, _, _), entry in record.counts(record_files).items():
        mine.setdefault(symbol, collections.Counter()).update(entry)
    agreed, explained, unexplained = [], [], []
    for symbol in sorted(driver):
        agrees, bad, text = explain(symbol, driver[symbol],
                                    mine.get(symbol, collections.Counter()), rows, never)
        if text:
            (agreed if agrees else unexplained if bad else explained).append(text)
    late = record.made_at_the_end(record_files)
    for symbol in sorted(set(mine) - set(driver)):
        if not mine[symbol]["calls"]:
            continue
        text = f"{symbol}: hostwait {mine[symbol]['calls']} calls, CUPTI none"
        if symbol in late:
            explained.append(f"{text}; explained: made by exit handlers only ({late[symbol]}), when "
                             "the subscriber has written its counts")
        else:
            unexplained.append(text)
    for kind, base in SYNC_RECORDS.items():
        symbols = [s for s in set(driver) | set(mine) if re.fullmatch(base + r"(_v\d+)?(_ptsz)?", s)]
        ours = sum(mine[s]["calls"] for s in symbols if s in mine)
        calls = sum(driver[s]["calls"] for s in symbols if s in driver)
        text = f"synchronization records of type {kind}: CUPTI {sync[kind]}, hostwait {ours}"
        if sync[kind] == ours:
            agreed.append(text)
        elif calls == ours:
            explained.append(f"{text}; explained: CUPTI's own callbacks counted {calls} calls of "
                             f"{base} in the same run; it keeps no record of some")
        else:
            unexplained.append(text)
    return agreed, explained, unexplained


def main():
    agreed, explained, unexplained = compare(sys.argv[1:2], sys.argv[2:])
    for title, lines in (("agrees", agreed), ("explained", explained),
                         ("UNEXPLAINED", unexplained)):
        for line in lines:
            print(f"{title}: {line}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
