# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Proofs that a large host does not notice hostwait: worker processes, compilers, ranks, graphs and a
profiler beside it. The same output and status, and the findings in the right process."""

import re
import socket

from harness import WORKLOADS, python, text_of
from proofs import same_output


def pid_of(ran):
    found = re.search(r"^pid (\d+)$", ran.out, re.M)
    return int(found.group(1)) if found else 0


def only_in(session, name, ran):
    """The one process that says that it waited has a record, and no other."""
    pids = [each["pid"] for each in ran.report["processes"]] if ran.report else []
    session.check(f"{name}.process", pids == [pid_of(ran)],
                  f"records of {pids}, the program is {pid_of(ran)}")


def waits(ran, pattern="_local_scalar_dense|item"):
    """Calls of the findings that the pattern names."""
    return sum(f["calls"] for f in ran.findings()
               if re.search(pattern, text_of(f, "native", "runtime_call", "python")))


def loader(session):
    """DataLoader workers by fork and by spawn: they call no CUDA, and leave no record."""
    for method in ("fork", "spawn"):
        ran = same_output(session, f"loader.{method}",
                          [python(), WORKLOADS / "torch_loader.py", method], runs_without=1)
        if ran is None:
            continue
        only_in(session, f"loader.{method}", ran)
        session.check(f"loader.{method}.items", waits(ran) >= 16,
                      f"{waits(ran)} calls under item()")


def compiled(session):
    """torch.compile: its compiler processes leave no record."""
    ran = same_output(session, "compiled", [python(), WORKLOADS / "torch_compiled.py"],
                      runs_without=1)
    if ran is None:
        return
    only_in(session, "compiled", ran)
    session.check("compiled.items", waits(ran) >= 20, f"{waits(ran)} calls under item()")


def ranks(session):
    """torchrun with two gloo ranks on one device: a record per rank, the status of torchrun."""
    def command(folder, *more):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        folder.mkdir(exist_ok=True)
        return [python(), "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", "2",
                "--master-addr", "127.0.0.1", "--master-port", str(port),
                WORKLOADS / "torch_ranks.py", folder, *more]

    env = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    folders = [session.work / "ranks-without", session.work / "ranks-with"]
    plain = session.run(command(folders[0]), env)
    if re.search("no CUDA device|no gloo", plain.out) or "No module named" in plain.err:
        session.skip("ranks", (plain.out + plain.err).strip()[-200:])
        return
    ran = session.hostwait(command(folders[1]), env=env)
    session.check("ranks.status", plain.status == ran.status == 0,
                  f"{plain.status} without, {ran.status} with; {ran.err.strip()[-300:]}"
                  if ran.status else "")
    written = [{path.name: path.read_text() for path in folder.iterdir()} for folder in folders]
    session.check("ranks.bit_identical", len(written[0]) == 2 and written[0] == written[1],
                  f"{written[0]} and {written[1]}" if written[0] != written[1] else "2 ranks")
    processes = ran.report["processes"] if ran.report else []
    session.check("ranks.records",
                  sorted((each["rank"], each["world"]) for each in processes) == [(0, 2), (1, 2)],
                  f"{[(each['rank'], each['world']) for each in processes]}")
    session.check("ranks.items", waits(ran) >= 20, f"{waits(ran)} calls under item()")
    plain = session.run(command(folders[0], "fail"), env)
    ran = session.hostwait(command(folders[1], "fail"), env=env)
    session.check("ranks.failure", plain.status == ran.status != 0,
                  f"{plain.status} without, {ran.status} with")


def graphs(session):
    """Captures and replays: the same results; the wait that breaks PyTorch's capture is named."""
    for library in ("torch", "cupy"):
        ran = same_output(session, f"graphs.{library}",
                          [python(), WORKLOADS / "graphs.py", library], runs_without=1)
        if ran is None:
            continue
        only_in(session, f"graphs.{library}", ran)
        session.check(f"graphs.{library}.findings", bool(ran.findings()),
                      f"{len(ran.findings())} findings")
        if library == "torch":
            broken = [capture["broken_by"] for capture in ran.report["captures"]] if ran.report else []
            session.check("graphs.torch.broken",
                          any("wait_in_a_capture" in text_of(call) for call in broken),
                          f"broken by {[call['call'] for call in broken]}")


def profiler(session):
    """torch.profiler and NVTX beside us: the profile has kernels, copies and the
    synchronization, and the findings are there."""
    ran = same_output(session, "profiler", [python(), WORKLOADS / "torch_profiled.py"],
                      runs_without=1)
    if ran is None:
        return
    only_in(session, "profiler", ran)
    profile = re.search(r"^profile\t(.*)$", ran.out, re.M)
    profile = profile[1] if profile else ""
    session.check("profiler.profile", re.fullmatch(
        r"kernels True, copies [1-9]\d*, synchronizations True", profile) is not None, profile)
    session.check("profiler.items", waits(ran) >= 5, f"{waits(ran)} calls under item()")
    session.check("profiler.range", any(f.get("range") == "profiled" for f in ran.findings()),
                  f"ranges {sorted({f.get('range') for f in ran.findings()})}")


ALL = (loader, compiled, ranks, graphs, profiler)
