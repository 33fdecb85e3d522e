# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The proofs on a real GPU, one function per sentence of what is claimed."""

import re
import statistics

import cases_proof
import cupti_compare
import programs
import proof_captures
import record
from advice_pairs import advice
from harness import WORKLOADS, base_call, python, text_of

# What routes.cpp makes: (base call, kind) -> calls, and of those behind 10 ms of work.
ROUTE_CALLS = {
    ("cuStreamSynchronize", "stream_sync"): (3 + 2 + 1 + 1 + 10, 3 + 2),
    ("cuEventSynchronize", "event_sync"): (2, 2),
    ("cuCtxSynchronize", "device_sync"): (2, 2),
    ("cuMemcpyDtoHAsync", "async_copy"): (4, 4),
    ("cuMemcpyDtoH", "copy"): (5, 5),
    ("cuMemcpyHtoDAsync", "async_copy"): (2, 2),
    ("cuMemsetD8", "memset"): (1, 1),
    ("cuMemHostUnregister", "host_free"): (1, 1),
    ("cuMemFreeHost", "host_free"): (1, 1),
    ("cuMemFree", "free"): (2, 2),
}
# Start-up differs between runtime and driver: contexts, modules and allocations are left out.
COMPARED_KINDS = {kind for _, kind in ROUTE_CALLS}


def lines_of(text):
    return [line for line in text.splitlines() if "\t" in line or line.startswith(("checksum", "losses"))]


def missing_route(session, name):
    if (session.build / f"routes_{name}").exists():
        return False
    session.skip(f"routes.{name}", "the program was not built")
    return True


def route_counts(session, ran):
    """{(base call, kind): (calls, waited, verdicts)} of what the proof compares."""
    made = {}
    for (symbol, kind, verdict), entry in record.counts(ran.records).items():
        if kind not in COMPARED_KINDS or verdict == "none":
            continue
        calls, waited, verdicts = made.get((base_call(symbol), kind), (0, 0, set()))
        made[base_call(symbol), kind] = (calls + entry["calls"], waited + entry["waited"],
                                         verdicts | {verdict})
    return made


def routes(session):
    """One program, five ways to the driver: identical findings in all."""
    reference = None
    for name in programs.ROUTES:
        if missing_route(session, name):
            continue
        program = session.build / f"routes_{name}"
        plain = session.run([program, "log"])
        ran = session.hostwait([program, "log"])
        if not session.check(f"routes.{name}.runs", plain.status == 0 and ran.status == 0,
                             f"status {plain.status} without, {ran.status} with"):
            continue
        session.check(f"routes.{name}.output_identical", plain.out == ran.out and plain.out != "",
                      plain.out.strip())
        made = route_counts(session, ran)
        # What is read back first (to_device before the loop) is a pageable upload: its own row.
        made.pop(("cuMemcpyHtoD", "copy"), None)
        for key, (calls, busy) in ROUTE_CALLS.items():
            got = made.get(key, (0, 0, set()))
            session.check(f"routes.{name}.{key[0]}",
                          got[0] == calls and busy <= got[1] <= calls,
                          f"{got[0]} calls (made {calls}), {got[1]} waited (behind work {busy}), "
                          f"verdict {', '.join(sorted(got[2])) or 'none'}")
        extra = sorted(set(made) - set(ROUTE_CALLS))
        session.check(f"routes.{name}.nothing_else", not extra, str(extra) if extra else "")
        # A null-stream call of the per-thread variant waits for its own stream, by design.
        shape = {key: (calls, sorted({"stream" if name == "per_thread" and v == "legacy" else v
                                      for v in verdicts}))
                 for key, (calls, _, verdicts) in made.items()}
        if reference is None:
            reference = (name, shape)
            continue
        different = {key for key in set(shape) | set(reference[1])
                     if shape.get(key) != reference[1].get(key)}
        if name == "per_thread":
            null_stream = {("cuMemcpyDtoH", "copy"), ("cuMemsetD8", "memset")}
            accepted = {key for key in different & null_stream
                        if shape[key][0] == reference[1][key][0] and shape[key][1] == ["stream"]}
            for key in sorted(accepted):
                session.say(f"NOTE routes.per_thread: {key[0]} waits for its own stream instead of "
                            "the legacy stream")
            different -= accepted
        session.check(f"routes.{name}.same_as_{reference[0]}", not different,
                      "; ".join(f"{key}: {shape.get(key)} against {reference[1].get(key)}"
                                for key in sorted(different)))


# What runtimes.cpp makes through each runtime: (base call, kind) -> calls.
RUNTIME_CALLS = {
    ("cuMemcpyHtoD", "copy"): 1,
    ("cuMemcpyDtoH", "copy"): 1,
    ("cuMemcpyDtoHAsync", "async_copy"): 1,  # the pinned one cannot wait
    ("cuStreamSynchronize", "stream_sync"): 1,
    ("cuEventSynchronize", "event_sync"): 1,
    ("cuCtxSynchronize", "device_sync"): 1,
    ("cuMemsetD8", "memset"): 1,
    ("cuMemFreeHost", "host_free"): 1,
    ("cuMemFree", "free"): 1,
}


def runtime_versions(session):
    """One program opens the runtimes of CUDA 11.8, 12 and 13 in turn: the same findings in all."""
    found = programs.runtimes()
    missing = [version for version in ("11.0", "12", "13") if version not in found]
    if not (session.build / "runtimes").exists() or len(found) < 2:
        session.skip("runtimes", f"no libcudart.so for {', '.join(missing) or 'nothing'}, or the "
                     "program was not built")
        return
    if missing:
        session.skip("runtimes.all", f"no libcudart.so.{', '.join(missing)} on this machine")
    command = [session.build / "runtimes", *found.values()]
    plain = session.run(command)
    ran = session.hostwait(command)
    session.say(ran.out.strip())
    session.check("runtimes.runs", plain.status == 0 and ran.status == 0,
                  f"status {plain.status} without, {ran.status} with")
    session.check("runtimes.output_identical", plain.out == ran.out and plain.out != "")
    session.check("runtimes.calls_succeed",
                  all(set(line.split(":")[1].split()) == {"0", "7"}
                      for line in ran.out.strip().splitlines()), ran.out.strip()[-300:])
    shapes = {version: {} for version in found}
    for (symbol, kind, verdict, label), entry in record.counts(ran.records, labels=True).items():
        version = label.removeprefix("libcudart.so.")
        if version in shapes and kind in COMPARED_KINDS and verdict != "none":
            key = (base_call(symbol), kind, verdict)
            shapes[version][key] = shapes[version].get(key, 0) + entry["calls"]
    first = next(iter(shapes))
    for version, shape in shapes.items():
        made = {(call, kind): calls for (call, kind, _), calls in shape.items()}
        different = sorted(key for key in set(made) | set(RUNTIME_CALLS)
                           if made.get(key) != RUNTIME_CALLS.get(key))
        session.check(f"runtimes.{version}.findings", not different,
                      "; ".join(f"{key}: {made.get(key)}, made {RUNTIME_CALLS.get(key)}"
                                for key in different))
        if version != first:
            apart = set(shape.items()) ^ set(shapes[first].items())
            session.check(f"runtimes.{version}.same_as_{first}", not apart, str(apart) if apart else "")


def refusals_in_c(session):
    """hostwait_push(ERROR, SYNC) on every route: 800, untouched memory, other threads go on."""
    for name in programs.ROUTES:
        if missing_route(session, name):
            continue
        ran = session.hostwait([session.build / f"routes_{name}", "error"])
        for line in ran.out.splitlines():
            verdict, _, what = line.partition(" ")
            if verdict in ("PASS", "FAIL"):
                session.check(f"error.{name}.{what.replace(' ', '_')}", verdict == "PASS")
        # Refusals are violations: 86, where the program itself returned 0.
        session.check(f"error.{name}.status", ran.status == 86, f"status {ran.status}")


def level_fail(session):
    """`--level fail` ends with 86, an unchanged program with its own status."""
    program = session.build / "routes_static"
    if missing_route(session, "static"):
        return
    failing = session.hostwait([program, "log"], options=["--level", "fail"])
    plain = session.hostwait([program, "log"], options=["--level", "log"])
    session.check("level_fail.status", failing.status == 86, f"status {failing.status}")
    session.check("level_log.status", plain.status == 0, f"status {plain.status}")


def same_output(session, name, command, runs_without=2):
    """Output lines with and without hostwait. Lines that vary without hostwait prove nothing."""
    without = [session.run(command) for _ in range(runs_without)]
    if without[0].status == 77:
        session.skip(name, without[0].out.strip().splitlines()[-1] if without[0].out else "77")
        return None
    ran = session.kept[name] = session.hostwait(command)
    session.check(f"{name}.status", ran.status == without[0].status == 0,
                  f"{without[0].status} without, {ran.status} with; {ran.err.strip()[-200:]}"
                  if ran.status else "")
    tables = [dict(line.partition("\t")[::2] for line in lines_of(run.out))
              for run in [*without, ran]]
    stable = [key for key in tables[0] if all(t.get(key) == tables[0][key] for t in tables[:-1])]
    for key in sorted(set(tables[0]) - set(stable)):
        session.skip(f"{name}.{key}", "differs between two runs without hostwait")
    different = [key for key in stable if tables[-1].get(key) != tables[0][key]]
    failed = [key for key in stable if tables[0][key].startswith("error")]
    for key in failed:
        session.skip(f"{name}.{key}", tables[0][key])
    session.check(f"{name}.bit_identical", len(stable) > len(failed) and not different,
                  f"{len(stable) - len(failed)} results" if not different else str(different))
    return ran


# Operation -> a name that must stand in a finding of its Python function.
TORCH_NAMES = {
    "loss_item": "_local_scalar_dense", "masked_indexing": "nonzero", "nonzero": "nonzero",
    "to_cpu": "copy", "pageable_non_blocking": "copy", "if_tensor": "_local_scalar_dense",
    "linalg_eigh": "linalg|cusolver|eigh", "linalg_inv": "linalg|copy|inv",
    "linalg_cholesky": "linalg|copy|cholesky", "stream_synchronize": "[sS]ynchronize",
    "device_synchronize": "[sS]ynchronize", "event_synchronize": "[sS]ynchronize",
    "empty_cache": "emptyCache|release|free", "backward": "_local_scalar_dense",
}
CUPY_KINDS = {
    "get": "copy", "asnumpy": "copy", "float_of_max": "copy", "nonzero": "copy",
    "masked_indexing": "copy", "stream_synchronize": "sync", "device_synchronize": "sync",
}


def findings_by_text(session, ran, group, names):
    """Each operation of a workload appears in a finding that names the library function. Python
    frames come with a later issue: without them the library function alone is looked for."""
    with_python = any(f.get("python") for f in ran.findings())
    for operation, wanted in names.items():
        hits = [f for f in ran.findings()
                if re.search(wanted, text_of(f, "native", "runtime_call"))
                and (not with_python or operation in text_of(f, "python"))]
        session.check(f"{group}.names.{operation}", bool(hits),
                      f"/{wanted}/ in {len(hits)} findings"
                      + (f": {hits[0]['call']}, {hits[0]['kind']}" if hits else ""))


def torch(session):
    ran = same_output(session, "torch", [python(), WORKLOADS / "torch_ops.py"])
    if ran is None:
        return
    findings_by_text(session, ran, "torch", TORCH_NAMES)
    threads = {name for f in ran.findings() for name in f.get("thread_names", [])}
    session.check("torch.autograd_thread", len(threads) > 1, f"threads {sorted(threads)}")
    (session.out / "torch-report.txt").write_text(ran.err[-15000:], encoding="utf-8")


def cupy(session):
    ran = same_output(session, "cupy", [python(), WORKLOADS / "cupy_ops.py"])
    if ran is None:
        return
    kinds = {f["kind"] for f in ran.findings()}
    for operation, wanted in CUPY_KINDS.items():
        session.check(f"cupy.kinds.{operation}", any(wanted in kind for kind in kinds),
                      f"kinds {sorted(kinds)}")
    session.check("cupy.names", any(re.search("cupy|cusolver", text_of(f), re.I)
                                    for f in ran.findings()), "a finding names a CuPy module")


def jax(session):
    ran = same_output(session, "jax", [python(), WORKLOADS / "jax_ops.py"])
    if ran is None:
        return
    # facts/README.md: copies on XLA's workers, waits in compilation; never the user's thread.
    calls = {f["call"] for f in ran.findings()}
    session.check("jax.seen", bool(calls), f"{sorted(calls)}")


def libraries(session):
    program = session.build / "libraries"
    if not program.exists():
        session.skip("libraries", "the program was not built")
        return
    ran = same_output(session, "libraries", [program], runs_without=2)
    if ran is None:
        return
    for name in ("cublas", "cusolver"):
        hits = [f for f in ran.findings() if re.search(name, text_of(f), re.I)]
        session.check(f"libraries.{name}", bool(hits),
                      f"{len(hits)} findings; " + (hits[0]["call"] if hits else ""))
    wanted = [f for f in ran.findings() if "dot_with_host_result" in text_of(f)]
    session.check("libraries.user_function", bool(wanted), "cublasSdot's caller is named")


def errors_in_python(session):
    for name, command in (("torch", [python(), WORKLOADS / "torch_error.py"]),
                          ("cupy", [python(), WORKLOADS / "cupy_ops.py", "error"])):
        ran = session.hostwait(command)
        if ran.status == 77:
            session.skip(f"error.{name}", ran.out.strip()[-200:])
            continue
        checks = [line.partition(" ")[::2] for line in ran.out.splitlines()
                  if line.startswith(("PASS ", "FAIL "))]
        for verdict, what in checks:
            session.check(f"error.{name}: {what}", verdict == "PASS")
        session.check(f"error.{name}.completed", bool(checks) and ran.status == 86,
                      f"{len(checks)} checks, status {ran.status}; {ran.err.strip()[-300:]}"
                      if ran.status != 86 else f"{len(checks)} checks, status 86: refusals were made")


def cupti(session):
    """A separate run of the same program under a CUPTI subscriber: no unexplained difference."""
    injected = session.build / "libcupti_count.so"
    if not injected.exists():
        session.skip("cupti", "libcupti_count.so was not built")
        return
    commands = {"routes_static": [session.build / "routes_static", "log"],
                "libraries": [session.build / "libraries"],
                "torch": [python(), WORKLOADS / "torch_ops.py"],
                "cupy": [python(), WORKLOADS / "cupy_ops.py"]}
    for name, command in commands.items():
        output = session.work / f"cupti-{name}-%p.tsv"
        witness = session.run(command, env={"CUDA_INJECTION64_PATH": str(injected),
                                            "CUPTI_COUNT_OUTPUT": str(output)})
        counted = sorted(session.work.glob(f"cupti-{name}-*.tsv"))
        if witness.status == 77:
            session.skip(f"cupti.{name}", witness.out.strip()[-200:])
            continue
        if not counted:
            session.check(f"cupti.{name}", False, f"no counts; {witness.err.strip()[-300:]}")
            continue
        ran = session.kept.get(name) or session.hostwait(command)
        agreed, explained, unexplained = cupti_compare.compare(counted, ran.records)
        for line in agreed:
            session.log(f"cupti.{name}: agrees: {line}")
        for line in explained:
            session.say(f"NOTE cupti.{name}: {line}")
        for line in unexplained:
            session.say(f"NOTE cupti.{name}: UNEXPLAINED {line}")
        session.check(f"cupti.{name}", not unexplained and bool(agreed),
                      f"{len(agreed)} agree, {len(explained)} explained, "
                      f"{len(unexplained)} unexplained")
        session.result(f"cupti.{name}.unexplained", len(unexplained), "differences")


def seconds_of(ran, paused=None):
    found = re.findall(r"^seconds ([0-9.]+) ?(paused)?", ran.out, re.M)
    return [float(s) for s, mark in found if paused is None or bool(mark) == paused]


def training_cost(session, steps=1000, rounds=6, single_steps=60000):
    """What recording costs a training loop that logs its loss: on and paused within one process."""
    ran = session.hostwait([python(), WORKLOADS / "torch_train.py", steps, rounds],
                           env={"PAUSE": "1", "ALTERNATE": str(single_steps)})
    if ran.status == 77:
        session.skip("training_cost", ran.out.strip()[-200:])
        return
    on, off = seconds_of(ran, paused=False), seconds_of(ran, paused=True)
    if on and off and len(on) == len(off):
        inside = [a / b for a, b in zip(on, off)]
        session.say(f"training: recording/paused in one process, {len(inside)} pairs: median "
                    f"{statistics.median(inside):.4f}, {min(inside):.4f} to {max(inside):.4f}")
        session.result("training.ratio_paused", statistics.median(inside), "ratio", len(inside),
                       min(inside), max(inside))
    # Step by step: the smallest noise to be had. min and max are the 95 % interval of the ratio.
    found = re.search(r"^alternating ([0-9.]+) ([0-9.]+) ([0-9.]+) ([0-9.]+) ([0-9]+)", ran.out, re.M)
    if session.check("training.alternating", found is not None, "single steps were timed"):
        on_ns, off_ns, low, high = (float(found[i]) for i in range(1, 5))
        session.say(f"training: recording/paused step by step: medians {on_ns / 1000:.1f} and "
                    f"{off_ns / 1000:.1f} us, ratio {on_ns / off_ns:.5f}, 95 % {low} to {high}")
        session.result("training.ratio_by_step", on_ns / off_ns, "ratio", int(found[5]), low, high)


def training(session, pairs=10, steps=1000):
    """A training loop that logs its loss: the same losses with hostwait and without."""
    command = [python(), WORKLOADS / "torch_train.py", steps, 1]
    probe = session.run([python(), WORKLOADS / "torch_train.py", 20, 1])
    if probe.status == 77:
        session.skip("training", probe.out.strip()[-200:])
        return
    ratios, with_times, digests = [], [], set()
    for pair in range(pairs):
        order = [session.run, session.hostwait] if pair % 2 == 0 else [session.hostwait, session.run]
        runs = {function.__name__: function(command) for function in order}
        for ran in runs.values():
            digests.update(line for line in ran.out.splitlines() if line.startswith("losses"))
        plain, mine = (seconds_of(runs[name]) for name in ("run", "hostwait"))
        if plain and mine:
            ratios.append(mine[0] / plain[0])
            with_times.append(mine[0])
    if not session.check("training.runs", len(ratios) == pairs, f"{len(ratios)} pairs"):
        return
    session.check("training.losses_identical", len(digests) == 1,
                  f"{len(digests)} different sets of losses in {2 * pairs} runs")
    middle = statistics.median(ratios)
    session.say(f"training: {steps} steps, with/without over {pairs} pairs of processes: median "
                f"{middle:.4f}, {min(ratios):.4f} to {max(ratios):.4f}")
    session.result("training.ratio", middle, "ratio", pairs, min(ratios), max(ratios))
    session.result("training.seconds", statistics.median(with_times), "s", pairs,
                   min(with_times), max(with_times))


def captures(session):
    """See proof_captures.py."""
    proof_captures.captures(session, same_output)


def held(session):
    """See proof_captures.py."""
    proof_captures.held(session)


ALL = (routes, runtime_versions, refusals_in_c, level_fail, captures, held, libraries, torch,
       errors_in_python, cupy, advice, jax, cupti, cases_proof.cases, training_cost, training)
