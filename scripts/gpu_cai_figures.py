# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Gathers the JSON lines of scripts/gpu_cai.sh into one measurement file, holds the figures against their
budgets, and writes the line that checks read: gpu_cai_figures.py OUTDIR COMMIT. With --line OUTDIR the line
alone: scripts/bench.sh.
"""

import datetime
import json
import pathlib
import platform
import re
import subprocess
import sys

BUDGETS = {"same_stream_ns": (50.0, "at most"), "pair_ratio": (1.3, "at most"),
           "waits_of_eight_arrays": (2.0, "at most")}


def read_lines(path):
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def normalised(item, step):
    """A measurement's result; proofs bring `ok` and figures of their own."""
    if "value" in item:
        return item
    rest = {key: value for key, value in item.items() if key not in ("name", "ok")}
    return {"name": item["name"], "value": item.get("ok"), "unit": "ok", "n": 1, "step": step,
            **({"figures": rest} if rest else {})}


def machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        first = subprocess.run(query, capture_output=True, text=True, timeout=20,
                               check=True).stdout.splitlines()[0]
        gpu, driver = (part.strip() for part in first.split(","))
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        gpu = driver = "unknown"
    cuda = "unknown"
    try:
        text = subprocess.run(["nvidia-smi"], capture_output=True, text=True, timeout=20, check=True).stdout
        cuda = re.search(r"CUDA Version: *([0-9.]+)", text).group(1)
    except (OSError, subprocess.SubprocessError, AttributeError):
        pass
    return gpu, driver, cuda


def summary(results):
    """The budgeted figures; None where a step did not give one."""
    values = {r["name"]: r for r in results}

    def value(name):
        found = values.get(name, {}).get("value")
        return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None

    cost = values.get("cost.summary", {}).get("figures", {})
    views = [v for k, v in cost.items() if k.startswith("view_vs_cuda_core")]
    return {"same_stream_ns": value("same_stream.acquire"), "pair_ratio": value("pair.ratio"),
            "view_vs_cuda_core": min(views) if views else None, "busy_vs_cupy": cost.get("busy_vs_cupy"),
            "waits_of_eight_arrays": value("eight_arrays_two_streams.waits")}


def gather(out):
    return [normalised(item, path.stem) for path in sorted(out.glob("*.jsonl"))
            for item in read_lines(path) if "name" in item]


def line(figures):
    shown = ("same_stream_ns", "pair_ratio", "view_vs_cuda_core", "busy_vs_cupy")
    text = " ".join(f"{k}={'n/a' if figures[k] is None else format(figures[k], '.4g')}" for k in shown)
    return f"cai: {text}"


def main(folder, commit):
    out = pathlib.Path(folder)
    results = gather(out)
    gpu, driver, cuda = machine()
    figures = summary(results)
    date = datetime.date.today().isoformat()
    short = re.sub(r"[^a-z0-9]+", "-", gpu.lower().replace("nvidia", "")).strip("-") or "gpu"
    document = {"schema": "hostwait.measurement/1", "commit": commit, "gpu": gpu, "driver": driver,
                "cuda": cuda, "machine": f"{platform.system()} {platform.machine()}", "results": results}
    (out / f"{date}-{short}-cai.json").write_text(json.dumps(document, indent=1) + "\n")
    kept = True
    for name, (limit, sense) in BUDGETS.items():
        got = figures[name]
        good = got is not None and (got <= limit if sense == "at most" else got >= limit)
        kept &= good
        print(f"gpu_cai: {name} = {got}, {sense} {limit}: {'kept' if good else 'NOT KEPT'}")
    (out / "summary.txt").write_text(line(figures) + "\n")
    return 0 if kept else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--line"]:
        print(line(summary(gather(pathlib.Path(sys.argv[2])))))
    else:
        sys.exit(main(*sys.argv[1:]))
