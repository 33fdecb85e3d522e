# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The examples of docs/advice.md: what stands before has its finding, what stands after has none."""

from harness import REPO, python

FOLDER = REPO / "tests" / "gpu" / "advice"


def judge(session, name, ran):
    """One check per pair that the program says it ran."""
    made = [line.split()[1] for line in ran.out.splitlines()
            if line.startswith("ran ") and line.endswith(" after")]
    for pair in made:
        found = {which: [f for f in ran.findings() if f["label"] == f"{pair} {which}"]
                 for which in ("before", "after")}
        anchors = {f["advice"]["anchor"] for f in found["before"]}
        session.check(f"advice.{name}.{pair}.before", pair.split(".")[0] in anchors,
                      "; ".join(f"{f['runtime_call']} {f['kind']} waited {f['waited']} latent "
                                f"{f['latent']}" for f in found["before"]) or "no finding")
        session.check(f"advice.{name}.{pair}.after", not found["after"],
                      "; ".join(f"{f['runtime_call']} {f['kind']} {f['where']}"
                                for f in found["after"]))
    return made


def advice(session):
    # A millisecond: what stands after must not be blamed for a moment's noise of the machine.
    options = ["--own-cost", "1000,1"]
    programs = {
        "cpp": (session.build / "advice", [*options, "--arm", "queue_full,poll", "--threshold-us", "300"]),
        "torch": (FOLDER / "advice_torch.py", [*options, "--arm", "poll"]),
        "cupy": (FOLDER / "advice_cupy.py", [*options, "--arm", "poll"]),
    }
    for name, (program, flags) in programs.items():
        if not program.exists():
            session.skip(f"advice.{name}", "the program was not built")
            continue
        command = [python(), program] if program.suffix == ".py" else [program]
        ran = session.hostwait(command, options=flags)
        if ran.status == 77:
            session.skip(f"advice.{name}", ran.out.strip()[-200:])
            continue
        for line in ran.out.splitlines():
            if line.startswith("skip "):
                session.skip(f"advice.{name}", line[5:])
        made = judge(session, name, ran)
        session.check(f"advice.{name}.runs", ran.status == 0 and bool(made),
                      f"status {ran.status}, {len(made)} pairs; {ran.err.strip()[-300:]}"
                      if ran.status else f"{len(made)} pairs")
