# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Two threads at once. Stream captures: replays are identical with and without hostwait, and a broken
capture names both threads and both places. Held calls: victim and holder."""

from harness import WORKLOADS, python

# How a thread breaks the other one's global capture: word of the program -> the driver's call.
BREAKS = {"query": "cuStreamQuery", "sync": "cuStreamSynchronize", "context": "cuCtxSynchronize",
          "event": "cuEventQuery", "alloc": "cuMemAlloc_v2"}


def has_function(place, name):
    return any(name in frame["function"] for frame in place["native"])


def broken(session, program, word, call):
    """One capture broken from another thread: told once, with names and places; the driver's own
    answers stay what they are."""
    name = f"captures.break.{word}"
    plain, ran = session.run([program, "break", word]), session.hostwait([program, "break", word])
    session.check(f"{name}.same_answers", plain.status == ran.status == 0 and plain.out == ran.out,
                  f"{plain.out.split()} without, {ran.out.split()} with")
    told = ran.report["captures"] if ran.report else []
    if not session.check(f"{name}.told_once", len(told) == 1 and told[0]["count"] == 1,
                         f"{len(told)} broken captures"):
        return
    one = told[0]
    begin, breaker = one["begin"], one["broken_by"]
    session.check(f"{name}.threads",
                  begin["thread"] == "capturer" and breaker["thread"] == "breaker" and
                  begin["tid"] != breaker["tid"] != 0,
                  f"begun by {begin['thread']}, broken by {breaker['thread']}")
    session.check(f"{name}.places",
                  has_function(begin, "capture_here") and has_function(breaker, "break_here"),
                  f"begun at {begin['where']}, broken at {breaker['where']}")
    session.check(f"{name}.call", breaker["call"] == call and one["mode"] == "global" and
                  not one["possible"], f"{breaker['call']}, result {one['result']}")
    gate = session.hostwait([program, "break", word], options=["--level", "fail"])
    session.check(f"{name}.fails", gate.status == 86, f"status {gate.status} under --level fail")


def captures(session, same_output):
    program = session.build / "captures"
    if not program.exists():
        session.skip("captures", "the program was not built")
    else:
        plain, ran = session.run([program, "replay"]), session.hostwait([program, "replay"])
        if plain.status == 77:
            session.skip("captures.replay", plain.out.strip()[-200:])
            return
        session.check("captures.replay.identical",
                      plain.status == ran.status == 0 and plain.out == ran.out,
                      f"{len(plain.out.splitlines())} lines")
        session.check("captures.replay.none_broken",
                      ran.report is not None and ran.report["captures"] == [],
                      str(ran.report["captures"] if ran.report else "no report")[:300])
        for word, call in BREAKS.items():
            broken(session, program, word, call)
    for name in ("torch_graphs", "cupy_graphs"):
        ran = same_output(session, f"captures.{name}", [python(), WORKLOADS / f"{name}.py"])
        if ran is not None:
            session.check(f"captures.{name}.none_broken",
                          ran.report is not None and ran.report["captures"] == [],
                          str(ran.report["captures"] if ran.report else "no report")[:300])


def held(session):
    """A pinned copy on a stream of its own, held up while another thread frees or loads."""
    program = session.build / "held"
    if not program.exists():
        session.skip("held", "the program was not built")
        return
    for word, call, thread in (("free", "cuMemFree_v2", "freeing"),
                               ("load", "cuModuleLoadData", "loading")):
        name = f"held.{word}"
        ran = session.hostwait([program, word])
        if ran.status == 77:
            session.skip(name, ran.out.strip()[-200:])
            continue
        # The main thread's first copy proves nothing: a busy machine can hold it up.
        victims = [f for f in ran.findings() if f["call"] == "cuMemcpyHtoDAsync_v2" and f["held"]
                   and "copying" in f["thread_names"]]
        if not session.check(f"{name}.held", ran.status == 0 and len(victims) == 1,
                             f"status {ran.status}, {len(victims)} held copies"):
            continue
        victim, holders = victims[0], victims[0]["held_by"]
        session.check(f"{name}.victim", victim["verdict"] == "none" and
                      victim["violations"] == 0 and has_function(victim, "copy_here"),
                      f"{victim['where']}, {victim['ns']['max'] / 1e6:.1f} ms at most")
        session.check(f"{name}.holder", bool(holders) and holders[0]["call"] == call and
                      holders[0]["thread"] == thread and has_function(holders[0], "hold_here"),
                      str([(h["call"], h["thread"], h["where"]) for h in holders]))
