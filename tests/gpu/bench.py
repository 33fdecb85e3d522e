# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The benchmarks of tests/bench on the real driver, beside a CUPTI subscriber in the same run."""

import sys

from harness import REPO

sys.path.insert(0, str(REPO / "tests" / "bench"))
import figures  # noqa: E402: the folder is known only now


def bench(session):
    calls = session.tool.parent / "hostwait_bench_calls"
    startup = session.tool.parent / "hostwait_bench_startup"
    if not calls.exists():
        session.skip("bench", f"no {calls.name} beside the tool")
        return
    extra = {}
    subscriber = session.build / "libcupti_count.so"
    if subscriber.exists():
        extra["HOSTWAIT_BENCH_CUPTI"] = str(subscriber)
    else:
        session.skip("bench.cupti", "libcupti_count.so was not built")
    # Half the time a benchmark of the default: device time is short, and the rounds stay.
    made, notes = figures.measure(calls, startup if startup.exists() else None, session.shim,
                                  session.tool, session.work, seconds=0.1, extra=extra)
    seen_from_python, missing = figures.measure_python(session.tool.parent.parent, session.shim,
                                                       session.work, rounds=3)
    made.update(seen_from_python)
    for line in [*notes, *missing, *figures.table(made)]:
        session.say(line)
    session.results += figures.results(made, "bench.")
    session.check("bench.unarmed_pointer", not notes, "; ".join(notes))
    session.say(figures.last_line(made))
