# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Proofs that findings name the right line, library thread and range: comments in the sources say
what is right (expected_lines.py)."""

import pathlib

import expected_lines
from harness import WORKLOADS, python

HERE = pathlib.Path(__file__).resolve().parent


def judged(session, group, source, command, options=()):
    """Runs a program and holds its findings against its source; None where it cannot run here."""
    ran = session.hostwait(command, options=options)
    if ran.status == 77:
        session.skip(f"{group}.{source.stem}", ran.out.strip()[-200:] or "status 77")
        return None
    if not session.check(f"{group}.{source.stem}.runs", ran.status == 0,
                         "" if ran.status == 0 else f"status {ran.status}: {ran.err[-400:]}"):
        return None
    (session.out / f"{group}-{source.stem}.txt").write_text(ran.err[-30000:], encoding="utf-8")
    for name, good, detail in expected_lines.judge(source, ran.findings()):
        session.check(f"{group}.{name}", good, detail)
    return ran


def lines(session):
    """Each wait is blamed on the line that its author would point at."""
    program = session.build / "lines"
    if program.exists():
        judged(session, "lines", HERE / "lines" / "lines.cpp", [program])
    else:
        session.skip("lines.lines", "the program was not built")
    for name in ("lines_torch", "lines_compile", "lines_cupy"):
        source = WORKLOADS / f"{name}.py"
        # Whole stacks: below autograd's thread no frame of the program may stand.
        ran = judged(session, "lines", source, [python(), source], options=["--stacks", "64"])
        if ran is not None and name == "lines_torch":
            library_thread(session, ran)


def library_thread(session, ran):
    """A wait that autograd's own thread makes without any Python frame is blamed on no line."""
    alone = [f for f in ran.findings()
             if not f["python"] and f["thread_names"]
             and all(name.startswith("pt_autograd") for name in f["thread_names"])]
    session.check("lines.autograd_thread", bool(alone), f"{len(alone)} findings of pt_autograd only")
    for finding in alone:
        session.check("lines.autograd_thread.where",
                      "lines_torch.py" not in finding["where"]
                      and "a library's thread" in finding["where"], finding["where"])


def nvtx(session):
    """PyTorch's, CuPy's and plain NVTX ranges stand in findings, and options look at them."""
    program = session.build / "ranges"
    if program.exists():
        judged(session, "nvtx", HERE / "nvtx" / "ranges.cpp", [program])
    else:
        session.skip("nvtx.ranges", "the program was not built")
    cupy, torch = (WORKLOADS / f"nvtx_{name}.py" for name in ("cupy", "torch"))
    judged(session, "nvtx", cupy, [python(), cupy])
    if judged(session, "nvtx", torch, [python(), torch]) is None:
        return
    failing = session.hostwait([python(), torch],
                               options=["--level", "fail@sync", "--range", "train_step*"])
    ranges = {f["range"] for f in failing.findings() if f["violations"]}
    session.check("nvtx.range_option", failing.status == 86 and bool(ranges)
                  and all(path.startswith("train_step") for path in ranges),
                  f"status {failing.status}, violations in {sorted(ranges)}")
    bounded = session.hostwait([python(), torch], options=["--capture-range", "profiler"])
    source = expected_lines.Source(torch)
    inside = [e.line for e in source.expected if e.keys.get("id") == "profiled"]
    named = [line for f in bounded.findings()
             if (line := expected_lines.of_source(f, source)) is not None]
    session.check("nvtx.capture_range", named == inside, f"lines {named}, profiled {inside}")


ALL = (lines, nvtx)
