#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Runs the benchmarks of intercepted calls and of start-up, and puts the figures together.

The same program runs without hostwait, with it and no stacks, and with it and 20 native frames, by
turns; within a process every figure is a difference to the driver's own function. The last line is
`bench: key=value …`. Where the options leave it out, nothing here judges: see the budgets beside."""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

# Figure -> (unit, budget of docs/architecture.md as text).
BUDGETS = {
    "allowed_ns": ("ns", "5"),
    "recorded_ns": ("ns", "two clock reads + 25"),
    "clock_ns": ("ns", ""),
    "native_stack_ns": ("ns", "500 over a recorded call"),
    "cold_ns": ("ns", ""),
    "cold_stack_ns": ("ns", ""),
    "pushpop_ns": ("ns", "20"),
    "unarmed_ratio": ("ratio", "1: the driver's own pointer"),
    "query_ns": ("ns", "5"),
    "classify_pageable_ns": ("ns", ""),
    "classify_pinned_ns": ("ns", ""),
    "classify_managed_ns": ("ns", ""),
    "classify_device_ns": ("ns", ""),
    "classify_named_ns": ("ns", "0 or less: nobody is asked"),
    "startup_ms": ("ms", "0.2"),
    "two_threads_ratio": ("ratio", "1"),
    "python_stack_ns": ("ns", "1500 over native frames"),
    "nvtx_ns": ("ns", "100"),
    "first_sight_us": ("us", "20"),
    "python_guard_ns": ("ns", "1000"),
    "unwind_backtrace_ns": ("ns", ""),
    "extract_stack_ns": ("ns", ""),
}
MODES = {"plain": None, "no_stack": "stacks=0:pystacks=0", "stack": "stacks=20:pystacks=0"}


class BenchError(Exception):
    pass


def run(command, env, timeout=300):
    done = subprocess.run([str(part) for part in command], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=timeout,
                          check=False)
    if done.returncode != 0:
        raise BenchError(f"{command[0]}: status {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def environment(mode, shim, out, extra):
    env = dict(os.environ, **extra)
    for name in ("LD_PRELOAD", "HOSTWAIT_OPTIONS"):
        env.pop(name, None)
    if MODES[mode] is not None:
        env["LD_PRELOAD"] = str(shim)
        env["HOSTWAIT_OPTIONS"] = f"{MODES[mode]}:output={out}"
    return env


def measure_calls(program, shim, out, rounds, extra, seconds):
    """{mode: {benchmark: [cpu ns per call, …]}}, {mode: context}."""
    times, contexts = {mode: {} for mode in MODES}, {}
    for _ in range(rounds):
        for mode in MODES:
            text = run([program, "--benchmark_format=json", f"--benchmark_min_time={seconds}",
                        "--benchmark_repetitions=3", "--benchmark_display_aggregates_only=false"],
                       environment(mode, shim, out, extra))
            made = json.loads(text)
            contexts[mode] = made["context"]
            for one in made["benchmarks"]:
                if one.get("run_type") == "iteration" and not one.get("error_occurred"):
                    name = one["name"].removesuffix("/real_time").replace("/real_time/", "/")
                    time = "cpu_time"
                    if name.endswith("/manual_time"):
                        name, time = name.split("/")[0], "real_time"
                    times[mode].setdefault(name, []).append(one[time])
    return times, contexts


def middle(values):
    return statistics.median(values)


def figures_of(times):
    """{figure: (value, n, min, max)} of measure_calls' times."""
    def difference(mode, name, base):
        pairs = [a - b for a, b in zip(times[mode][name], times[mode][base])]
        return middle(pairs), len(pairs), min(pairs), max(pairs)

    def plain(mode, name):
        values = times[mode][name]
        return middle(values), len(values), min(values), max(values)

    made = {
        "allowed_ns": difference("no_stack", "allowed", "own_direct"),
        "recorded_ns": difference("no_stack", "through/0", "own/0"),
        "clock_ns": plain("no_stack", "clock"),
        "pushpop_ns": plain("no_stack", "push_pop"),
    }
    with_stack = [a - b for a, b in zip(times["stack"]["through/20"], times["stack"]["own/20"])]
    without = [a - b for a, b in zip(times["no_stack"]["through/20"], times["no_stack"]["own/20"])]
    stacks = [a - b for a, b in zip(with_stack, without)]
    made["native_stack_ns"] = (middle(stacks), len(stacks), min(stacks), max(stacks))
    # The same call with its stack where the program has used its caches for something else.
    made["cold_ns"] = difference("stack", "cold_through", "cold_own")
    more = [a - b for a, b in zip(times["stack"]["cold_through"], times["no_stack"]["cold_through"])]
    made["cold_stack_ns"] = (middle(more), len(more), min(more), max(more))
    unarmed = [a / b for a, b in
               zip(times["no_stack"]["unarmed_through"], times["no_stack"]["unarmed_own"])]
    made["unarmed_ratio"] = (middle(unarmed), len(unarmed), min(unarmed), max(unarmed))
    made["query_ns"] = difference("no_stack", "query_through", "query_own")
    # Copies of no bytes wait for nothing and are not recorded. What judging adds by asking about
    # memory is what they cost over the one whose name says it all.
    def added(kind):
        return [a - b for a, b in zip(times["no_stack"][f"copy_through_{kind}"],
                                      times["no_stack"][f"copy_own_{kind}"])]

    for kind in ("pageable", "pinned", "managed", "device"):
        more = [a - b for a, b in zip(added(kind), added("named"))]
        made[f"classify_{kind}_ns"] = (middle(more), len(more), min(more), max(more))
    # Against a recorded call that has no pointer at all.
    more = [a - (c - d) for a, c, d in zip(added("named"), times["no_stack"]["through/0"],
                                           times["no_stack"]["own/0"])]
    made["classify_named_ns"] = (middle(more), len(more), min(more), max(more))
    two = [(a - b) / (c - d) for a, b, c, d in zip(
        times["no_stack"]["through/0/threads:2"], times["no_stack"]["own/0/threads:2"],
        times["no_stack"]["through/0"], times["no_stack"]["own/0"])]
    made["two_threads_ratio"] = (middle(two), len(two), min(two), max(two))
    # For scale: the driver's own call in a process without hostwait, and under a CUPTI subscriber.
    made["driver_call_ns"] = plain("plain", "own/0")
    if "under_cupti" in times["plain"]:
        made["cupti_subscriber_ns"] = difference("plain", "under_cupti", "own_direct")
    return made


def measure(calls, startup, shim, tool, out, rounds=3, seconds=0.2, extra=None):
    """All figures of one run: {name: (value, n, min, max)}, and notes as lines."""
    extra = extra or {}
    notes = []
    times, contexts = measure_calls(calls, shim, out, rounds, extra, seconds)
    made = figures_of(times)
    if contexts["no_stack"].get("unarmed_same_pointer") != "1":
        notes.append("an unarmed call does not have the driver's own pointer")
    latency = json.loads(run([calls, "--latency", "200000"],
                             environment("no_stack", shim, out, extra)))
    made["recorded_p999_ns"] = (latency["p99.9"], 1, latency["p99.9"], latency["p99.9"])
    for record in pathlib.Path(out).glob("*.hwr"):
        record.unlink()
    if startup is not None:
        starts = json.loads(run([startup, shim, tool, "200"], environment("plain", shim, out, {})))
        for name, kind in (("startup_ms", "preload"), ("run_ms", "run")):
            low, value, high = (a - b for a, b in zip(starts[kind], starts["plain"]))
            made[name] = (value, starts["rounds"], min(low, value), max(high, value))
    return made, notes


def measure_python(build, shim, out, rounds):
    """Figures seen from Python: {name: (value, n, min, max)}. Python and native frames against
    native frames alone, by turns; what the interpreter's and libgcc's own stacks cost beside them."""
    library = build / "lib/libhostwait_bench_stacks.so"
    if not library.exists():
        return {}, ["libhostwait_bench_stacks.so was not built: no figures seen from Python"]
    package = pathlib.Path(__file__).resolve().parent.parent.parent / "python"
    runs = {"native": [], "both": []}
    for _ in range(rounds):
        for mode, options in (("native", "stacks=20:pystacks=0"), ("both", "stacks=20:pystacks=20")):
            env = dict(os.environ, LD_PRELOAD=str(shim), NVTX_INJECTION64_PATH=str(shim),
                       HOSTWAIT_OPTIONS=f"{options}:output={out}")
            runs[mode].append(json.loads(run(
                [sys.executable, "-B", pathlib.Path(__file__).with_name("bench_python.py"), library,
                 package], env)))
        for record in pathlib.Path(out).glob("*.hwr"):
            record.unlink()

    def figure(values):
        return middle(values), len(values), min(values), max(values)

    both = runs["both"]
    made = {"python_stack_ns": figure([a["call"] - b["call"] for a, b in zip(both, runs["native"])]),
            "first_sight_us": figure([one["first_sight"] / 1000 for one in both]),
            "first_sight_p99_us": figure([one["first_sight_p99"] / 1000 for one in both]),
            "python_guard_ns": figure([one["guard"] for one in both]),
            "unwind_backtrace_ns": figure([one["unwind"] for one in both]),
            "extract_stack_ns": figure([one["extract_stack"] for one in both])}
    if both[0]["nvtx"] < 0:
        return made, ["built without nvtx3/nvToolsExt.h: no nvtx_ns"]
    made["nvtx_ns"] = figure([one["nvtx"] for one in both])
    return made, []


def table(made):
    lines = [f"{'figure':<22}{'value':>10}{'min':>10}{'max':>10}  budget"]
    for name, (value, _, low, high) in made.items():
        budget = BUDGETS.get(name, ("", "2" if name == "run_ms" else ""))[1]
        lines.append(f"{name:<22}{value:>10.3f}{low:>10.3f}{high:>10.3f}  {budget}".rstrip())
    return lines


def last_line(made):
    parts = [f"{name}={made[name][0]:.{1 if unit in ('ns', 'us') else 3}f}"
             for name, (unit, _) in BUDGETS.items() if name in made]
    return "bench: " + " ".join(parts)


def unit_of(name):
    return "ratio" if name.endswith("ratio") else name.rsplit("_", 1)[1]


def results(made, prefix=""):
    return [{"name": prefix + name, "value": value, "unit": unit_of(name), "n": n, "min": low,
             "max": high} for name, (value, n, low, high) in made.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder: bin/ and lib/")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="least time of one benchmark")
    wanted = parser.parse_args()
    build, out = pathlib.Path(wanted.build).resolve(), pathlib.Path(wanted.out).resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        made, notes = measure(build / "bin/hostwait_bench_calls",
                              build / "bin/hostwait_bench_startup", build / "lib/libhostwait.so",
                              build / "bin/hostwait", out.parent, wanted.rounds, wanted.seconds)
        python_made, python_notes = measure_python(build, build / "lib/libhostwait.so", out.parent,
                                                   wanted.rounds)
        made.update(python_made)
        notes += python_notes
    except (BenchError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True,
                            cwd=pathlib.Path(__file__).parent, check=False).stdout.strip()
    document = {"schema": "hostwait.measurement/1", "commit": commit or "unknown",
                "gpu": "none (simulated driver)", "driver": "simulated", "cuda": "13.0",
                "machine": f"{platform.machine()}, {os.cpu_count()} cores", "results": results(made)}
    out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print("\n".join([*notes, *table(made), f"written: {out}", last_line(made)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
