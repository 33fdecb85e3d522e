#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Runs the GPU proofs: run.py [build] [smoke] [proofs] [bench] --out FOLDER. Status 77: no GPU."""

import argparse
import ctypes
import os
import pathlib
import sys

import bench
import cases_proof
import guests
import line_proofs
import programs
import proofs
from harness import REPO, Session


def gpu_reason():
    """None where there is a usable GPU, else why not."""
    if os.environ.get("HOSTWAIT_GPU_SIMULATED") == "1":
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no driver: {error}"
    if hasattr(driver, "hostwait_sim_is_simulated"):
        return "the driver is the simulated one (LD_LIBRARY_PATH)"
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return "the driver does not start"
    return None if count.value else "the driver sees no GPU"


def smoke(session):
    """The shortest thing that shows whether the rest can work."""
    version = session.run([session.tool, "--version"])
    session.check("smoke.tool", version.status == 0, version.out.strip() or version.err[-300:])
    doctor = session.run([session.tool, "doctor"])
    session.check("smoke.doctor", doctor.status == 0, (doctor.out + doctor.err).strip()[-600:])
    program = session.build / "routes_static"
    if not program.exists():
        session.skip("smoke.program", "routes_static was not built")
        return
    ran = session.hostwait([program, "log"])
    session.check("smoke.program", ran.status == 0 and bool(ran.findings()),
                  f"status {ran.status}, {len(ran.records)} records, {len(ran.findings())} findings")
    for line in ran.err.strip().splitlines()[-14:]:
        session.say(f"  {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", nargs="*", choices=["build", "smoke", "proofs", "bench", []],
                        help="default: all")
    parser.add_argument("--out", required=True)
    parser.add_argument("--build", default=str(REPO / "build-gpu" / "programs"))
    parser.add_argument("--only", help="comma list of proof groups")
    options = parser.parse_args()
    phases = options.phase or ["build", "smoke", "proofs", "bench"]
    name = "measurement-" + "-".join(phases) + ".json"
    reason = gpu_reason()
    if reason is not None:
        print(f"SKIP: {reason}")
        return 77
    session = Session(options.out, options.build)
    if session.tool is None or session.shim is None:
        print("SKIP: neither build-carry/ nor build/ holds the tool and the library")
        return 77
    session.say(f"tool {session.tool}, library {session.shim}")
    wanted = options.only.split(",") if options.only else None
    if "build" in phases:
        if wanted != ["cases"]:
            session.attempt("build", programs.build)
        if wanted is None or "cases" in wanted:
            session.attempt("build.cases", cases_proof.build)
    if "smoke" in phases:
        session.attempt("smoke", smoke)
    if "proofs" in phases:
        for group in (*proofs.ALL, *guests.ALL, *line_proofs.ALL):
            if wanted is None or group.__name__ in wanted:
                session.attempt(group.__name__, group)
                session.write(name)  # a run that is cut off leaves what it has
    if "bench" in phases:
        session.attempt("bench", bench.bench)
    session.write(name)
    session.say(f"{session.passed} passed, {session.failed} failed, {session.skipped} skipped; {name}")
    if session.failed:
        return 1
    # Nothing could be shown: no success either.
    return 77 if session.skipped and not session.passed and "bench" not in phases else 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    sys.exit(main())
