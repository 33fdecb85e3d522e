# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Which CPython interpreters are on this machine, and a program's findings under hostwait."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

TOOL = os.environ.get("HOSTWAIT_TOOL")
HERE = pathlib.Path(__file__).resolve().parent
MINORS = (11, 12, 13, 14)
ASK = ("import json, sys, sysconfig; print(json.dumps([sys.version.split()[0], 'libpython3' in "
       "open('/proc/self/maps').read(), bool(sysconfig.get_config_var('Py_GIL_DISABLED'))]))")


class Interpreter:
    def __init__(self, path, version, shared):
        self.path, self.version, self.shared = path, version, shared
        self.minor = int(version.split(".")[1])
        self.name = f"{version} ({'shared' if shared else 'static'})"


def interpreters():
    """Each CPython 3.11 to 3.14 with a GIL that starts, one per version and kind of linking; says
    which minor versions are missing."""
    candidates = [shutil.which(f"python3.{minor}") for minor in MINORS]
    candidates += [f"{folder}/python3.{minor}" for folder in ("/usr/bin", "/usr/local/bin")
                   for minor in MINORS]
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    candidates += sorted(map(str, root.glob("versions/3.1[1234]*/bin/python3")))
    candidates += [sys.executable]
    seen = {}
    for path in filter(None, candidates):
        try:
            asked = subprocess.run([path, "-c", ASK], text=True, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue  # absent, or a pyenv shim whose version is not selected
        version, shared, free_threaded = json.loads(asked.stdout)
        if not free_threaded and version.startswith(tuple(f"3.{minor}." for minor in MINORS)):
            seen.setdefault((version, shared), Interpreter(path, version, shared))
    found = [one for _, one in sorted(seen.items())]
    for minor in MINORS:
        if not any(one.minor == minor for one in found):
            print(f"3.{minor}: skipped, no interpreter on PATH or in pyenv")
    return found


def under_hostwait(command, folder, options=(), env=None):
    """(output, JSON report) of a program that must end with status 0."""
    ran = subprocess.run([TOOL, "run", "--output", str(folder), *options, "--", *map(str, command)],
                         text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=120,
                         env=dict(os.environ, **(env or {})), check=False)
    if ran.returncode != 0:
        sys.exit(f"{command}: status {ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}")
    report = subprocess.run([TOOL, "report", "--format", "json", str(folder)], text=True,
                            capture_output=True, timeout=120, check=True)
    return ran.stdout, json.loads(report.stdout)


def stacks_by_label(report):
    """{label: [[file, function, line], …]} of the findings that bear a label."""
    return {finding["label"]: [[f["file"], f["function"], f["line"]] for f in finding["python"]]
            for finding in report["findings"] if finding["label"]}
