# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The public reports of tests/gpu/cases as proofs: builds the C and C++ ones, runs all of them under
`hostwait run`, few processes for many cases, and judges the reports (cases/judge.py)."""

import concurrent.futures
import os
import pathlib
import sys

import programs
from harness import REPO, python

HERE = pathlib.Path(__file__).resolve().parent / "cases"
sys.path.insert(0, str(HERE))
import judge  # noqa: E402: the folder is known only now

# Cases of one Python process: a framework takes seconds to import.
PER_PROCESS = 10


def build(session):
    """cases_driver from *.cpp, cases_runtime from *.cu; objects in parallel. One check per program."""
    root = programs.toolkit()
    if root is None:
        session.skip("cases.build", "no nvcc on this machine")
        return
    arch = os.environ.get("HOSTWAIT_GPU_ARCH", "native")
    # No optimization of host code: the lines of calls are judged.
    driver = ["g++", "-std=c++20", "-O0", "-g", f"-I{REPO / 'include'}", f"-I{root / 'include'}", "-c"]
    runtime = [str(root / "bin" / "nvcc"), "-std=c++20", "-O0", "-g", f"-I{REPO / 'include'}",
               *([] if arch == "none" else [f"-arch={arch}"]), "-c"]
    headers = programs.find_file("include/cublas_v2.h", "targets/*/include/cublas_v2.h",
                                 "nvidia/cu13/include/cublas_v2.h")
    if headers:
        runtime.insert(1, f"-I{headers.parent}")
    wanted = {"cases_driver": [(driver, path) for path in sorted(HERE.glob("*.cpp"))],
              "cases_runtime": [(driver, HERE / "cases.cpp")]
              + [(runtime, path) for path in sorted(HERE.glob("*.cu"))]}
    newest = max(path.stat().st_mtime for path in HERE.iterdir())
    for program, sources in wanted.items():
        target = session.build / program
        if target.exists() and target.stat().st_mtime > newest:
            continue
        objects = {path: session.build / f"{program}-{path.stem}.o" for _, path in sources}
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            runs = list(pool.map(lambda one: session.run([*one[0], one[1], "-o", objects[one[1]]]),
                                 sources))
        bad = [ran.err[-400:] for ran in runs if ran.status]
        if not bad:
            # Libraries behind the objects: linkers drop those that nothing needed yet.
            compiler, libraries = ("g++", []) if program == "cases_driver" else (
                str(root / "bin" / "nvcc"), programs.library_arguments("cublas"))
            linked = session.run([compiler, *objects.values(), *libraries,
                                  *programs.driver_library(), "-ldl", "-lpthread", "-o", target])
            bad = [linked.err[-400:]] if linked.status else []
        session.check(f"cases.build.{program}", not bad, "; ".join(bad))


def groups_of(cases, size):
    """Lists of cases that share `hostwait run` options, none longer than size."""
    by_options = {}
    for case in cases:
        key = (tuple(case.options), case.id if case.alone else "")
        by_options.setdefault(key, []).append(case)
    for (options, _), members in by_options.items():
        for start in range(0, len(members), size):
            yield list(options), members[start:start + size]


def run_group(session, command, options, cases, timed=True):
    """One process with these cases, judged."""
    ran = session.hostwait([*command, *[case.id for case in cases]], options=options)
    if ran.status == 77:
        for case in cases:
            session.skip(f"case.{case.id}", ran.out.strip()[-200:])
        return
    done = {line.split()[1] for line in ran.out.splitlines() if line.startswith("ran ")}
    findings = ran.findings()
    session.check(f"cases.{cases[0].id}-{cases[-1].id}.status", ran.status in (0, 86),
                  f"status {ran.status}; {ran.err.strip()[-300:]}" if ran.status not in (0, 86) else "")
    for case in cases:
        for part in ("case", "control"):
            if case.id not in done:
                session.check(f"{case.id} {part}", False, "did not run to its end")
                continue
            wrong = judge.judge(case, part, findings, timed)
            if session.check(f"{case.id} {part}", not wrong, "; ".join(wrong)):
                session.say(f"ok {case.id} {part}: " + ("; ".join(
                    f"{one['kind']} {one.get('verdict', '')}".strip()
                    for one in case.expected[part]) or "silent"))
        wrong = judge.judge_captures(case, ran.report["captures"]) if ran.report else ["no report"]
        if case.captures or wrong:
            session.check(f"{case.id} captures", not wrong, "; ".join(wrong))


def run_programs(session, on_sim=False):
    """The C and C++ cases. On the simulated driver those that only need it."""
    for program, suffix in (("cases_driver", ".cpp"), ("cases_runtime", ".cu")):
        if on_sim and suffix == ".cu":
            continue
        if not (session.build / program).exists():
            session.skip(program, "the program was not built")
            continue
        for options, members in groups_of(judge.all_cases(suffix), 1000):
            run_group(session, [session.build / program], options, members, timed=not on_sim)


def cases(session):
    """What the public reports complain about, as tests: what hostwait says, and where it is silent."""
    run_programs(session)
    for framework in ("torch", "cupy"):
        members = [case for case in judge.all_cases(".py")
                   if f"from {framework}_case import" in case.path.read_text(encoding="utf-8")]
        for options, group in groups_of(members, PER_PROCESS):
            run_group(session, [python(), HERE / "run_python.py"], options, group)
