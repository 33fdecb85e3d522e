# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What the GPU proofs share: running programs with and without hostwait, checks, the log, results."""

import dataclasses
import functools
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import traceback

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
WORKLOADS = pathlib.Path(__file__).resolve().parent / "workloads"


@dataclasses.dataclass
class Ran:
    """One finished program."""

    status: int
    out: str
    err: str
    seconds: float
    report: dict | None = None
    records: list = dataclasses.field(default_factory=list)

    def findings(self):
        return self.report["findings"] if self.report else []


class Session:
    """A run of the proofs: where things are, what was checked, what was measured."""

    def __init__(self, out, build):
        self.out = pathlib.Path(out).resolve()
        self.build = pathlib.Path(build).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.build.mkdir(parents=True, exist_ok=True)
        self.work = self.build / "records"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        self.log_file = open(self.out / "gpu.log", "a", encoding="utf-8")
        self.results = []
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.count = 0
        self.kept = {}  # runs under hostwait that a later proof looks at again
        self.tool = self._find("bin/hostwait", "HOSTWAIT_TOOL")
        self.shim = self._find("lib/libhostwait.so", "HOSTWAIT_SHIM")
        self.link = self._find("lib/libhostwait_link.so", "HOSTWAIT_SHIM_LINK")

    def _find(self, name, variable):
        if os.environ.get(variable):
            return pathlib.Path(os.environ[variable])
        for folder in ("build-carry", "build-gpu", "build"):
            if (REPO / folder / name).exists():
                return REPO / folder / name
        return None

    # Text.

    def say(self, text):
        print(text, flush=True)
        self.log_file.write(text + "\n")
        self.log_file.flush()

    def log(self, text):
        self.log_file.write(text + "\n")
        self.log_file.flush()

    def check(self, name, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            self.failures.append(name)
        self.say(f"{'PASS' if good else 'FAIL'} {name}{': ' + detail if detail else ''}")
        self.result(f"proof.{name}", int(bool(good)), "pass")
        return good

    def skip(self, name, reason):
        self.skipped += 1
        self.say(f"SKIP {name}: {reason}")

    def result(self, name, value, unit, n=1, low=None, high=None):
        low, high = (value if low is None else low), (value if high is None else high)
        self.results.append(
            {"name": name, "value": value, "unit": unit, "n": n, "min": low, "max": high})

    def attempt(self, name, function, *arguments):
        """Runs one group of proofs; an exception in it is a failed check, the others go on."""
        start = time.monotonic()
        self.say(f"-- {name}")
        try:
            function(self, *arguments)
        except Exception:  # noqa: BLE001: whatever it is, the next group still runs
            self.log(traceback.format_exc())
            self.check(f"{name}.completed", False, traceback.format_exc().strip().splitlines()[-1])
        self.say(f"-- {name}: {time.monotonic() - start:.1f} s")

    # Programs.

    def environment(self, extra=None):
        env = dict(os.environ, CUDA_DEVICE_MAX_CONNECTIONS="8", CUBLAS_WORKSPACE_CONFIG=":4096:8",
                   XLA_PYTHON_CLIENT_PREALLOCATE="false", TF_CPP_MIN_LOG_LEVEL="2",
                   PYTHONHASHSEED="0", PYTHONUNBUFFERED="1",
                   PYTHONPATH=os.pathsep.join(
                       [str(pathlib.Path(__file__).resolve().parent)]
                       + [p for p in [os.environ.get("PYTHONPATH")] if p]))
        env.pop("HOSTWAIT_OPTIONS", None)
        env.pop("LD_PRELOAD", None)
        env.update(extra or {})
        return env

    def run(self, command, env=None, timeout=240):
        command = [str(part) for part in command]
        start = time.monotonic()
        try:
            done = subprocess.run(command, env=self.environment(env), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace",
                                  timeout=timeout, check=False)
            ran = Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
        except subprocess.TimeoutExpired as late:
            text = [t.decode(errors="replace") if isinstance(t, bytes) else (t or "")
                    for t in (late.stdout, late.stderr)]
            ran = Ran(124, text[0], text[1] + f"\nstopped after {timeout} s", float(timeout))
        self.log(f"$ {' '.join(command)}\n[status {ran.status}, {ran.seconds:.2f} s]\n"
                 f"{ran.out[-6000:]}{ran.err[-6000:]}")
        return ran

    def hostwait(self, command, options=(), env=None, timeout=240):
        """`hostwait run`, then the JSON report of the records that it left."""
        self.count += 1
        folder = self.work / f"{self.count:03d}"
        folder.mkdir()
        ran = self.run([self.tool, "run", "--output", folder, *options, "--", *command], env,
                       timeout)
        ran.records = sorted(folder.glob("*.hwr"))
        if ran.records:
            made = subprocess.run([str(self.tool), "report", "--format", "json",
                                   *map(str, ran.records)],
                                  capture_output=True, text=True, errors="replace", timeout=120,
                                  check=False)
            try:
                ran.report = json.loads(made.stdout)
            except ValueError:
                self.log(f"report: status {made.returncode}\n{made.stdout[:500]}\n{made.stderr}")
            if ran.report is not None:
                self.log("findings: " + "; ".join(
                    f"{f.get('call')} {f.get('kind')} {f.get('verdict')} calls={f.get('calls')}"
                    f" waited={f.get('waited')} latent={f.get('latent')}"
                    f" refused={f.get('refused')}" for f in ran.findings())[:4000])
        return ran

    # Results.

    @functools.cached_property
    def machine(self):
        """Where and on which commit this runs."""
        def output(*command):
            try:
                return subprocess.run(command, capture_output=True, text=True, timeout=30,
                                      check=False).stdout.strip()
            except (OSError, subprocess.TimeoutExpired):
                return ""

        gpu = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
        first = [part.strip() for part in (gpu.splitlines() or ["none, none"])[0].split(",")]
        version = re.search(r"release ([0-9.]+)", output("nvcc", "--version"))
        commit = output("git", "-C", str(REPO), "rev-parse", "HEAD") or os.environ.get(
            "HOSTWAIT_COMMIT", "unknown")
        return {
            "schema": "hostwait.measurement/1",
            "commit": os.environ.get("HOSTWAIT_COMMIT") or commit,
            "gpu": first[0],
            "driver": first[1] if len(first) > 1 else "none",
            "cuda": version.group(1) if version else "unknown",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.libc_ver()[0]} "
                       f"{platform.libc_ver()[1]}, Python {platform.python_version()}",
        }

    def write(self, name):
        document = dict(self.machine, results=self.results)
        path = self.out / name
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        for failure in self.failures:
            self.say(f"  failed: {failure}")


def base_call(symbol):
    """cuMemcpyDtoH_v2_ptds and cuMemcpyDtoH_v2 are one call: the name without version, variant."""
    symbol = re.sub(r"_(ptds|ptsz)$", "", symbol)
    return re.sub(r"_v\d+$", "", symbol)


def text_of(finding, *keys):
    """What a finding says about its place, as one text to search in."""
    return json.dumps([finding.get(key) for key in
                       keys or ("native", "python", "runtime_call", "label", "thread_names")])


def python():
    return os.environ.get("HOSTWAIT_GPU_PYTHON") or sys.executable
