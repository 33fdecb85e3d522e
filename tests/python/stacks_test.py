# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python.stacks: what hostwait says of Python stacks against the interpreter's own frames.

For every supported interpreter that is installed (python3.X on PATH or through pyenv). Status 77
where there is none.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOL = os.environ["HOSTWAIT_TOOL"]
KEPT = 32  # pystacks' default
HERE = pathlib.Path(__file__).parent


def interpreters():
    """(version, path) of each CPython 3.11 to 3.13 that starts."""
    candidates = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13)]
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates += sorted(map(str, root.glob("versions/3.1[123]*/bin/python3")))
    candidates += [sys.executable]
    seen = {}
    for path in filter(None, candidates):
        try:
            version = subprocess.run(
                [path, "-c", "import sys; print(sys.version.split()[0])"], text=True,
                capture_output=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            continue  # a pyenv shim whose version is not selected
        if version.startswith(("3.11.", "3.12.", "3.13.")):
            seen.setdefault(version, path)
    return sorted(seen.items())


def findings_of(python, folder):
    ran = subprocess.run([TOOL, "run", "--output", folder, "--", python, "-B",
                          str(HERE / "stacks_program.py")], text=True, capture_output=True)
    if ran.returncode != 0:
        sys.exit(f"{python}: status {ran.returncode}\n{ran.stderr}")
    report = subprocess.run([TOOL, "report", "--format", "json", folder], text=True,
                            capture_output=True, check=True)
    return json.loads(ran.stdout), json.loads(report.stdout)["findings"]


def check(version, python):
    with tempfile.TemporaryDirectory() as folder:
        expected, findings = findings_of(python, folder)
    by_label = {finding["label"]: finding for finding in findings if finding["label"]}
    wrong = 0
    for label, stack in expected.items():
        found = by_label.get(label, {"python": []})["python"]
        got = [[frame["file"], frame["function"], frame["line"]] for frame in found]
        if got != stack[:KEPT]:
            wrong += 1
            print(f"{version} {label}:\n  hostwait {got}\n  python   {stack[:KEPT]}")
    print(f"{version}: {len(expected) - wrong} of {len(expected)} stacks agree")
    return wrong == 0 and len(expected) >= 17


def main():
    found = interpreters()
    for minor in (11, 12, 13):
        if not any(version.startswith(f"3.{minor}.") for version, _ in found):
            print(f"3.{minor}: skipped, no interpreter on PATH or in pyenv")
    if not found:
        return 77
    return 0 if all([check(version, python) for version, python in found]) else 1


sys.exit(main())
