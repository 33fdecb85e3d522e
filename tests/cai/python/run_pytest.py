# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""run_pytest.py VERSION BUILD FOLDER: pytest over FOLDER with CPython VERSION, in a virtual
environment below BUILD. Exits with 77 and the reason where interpreter or pytest cannot be had."""

import os
import pathlib
import shutil
import subprocess
import sys


def interpreter(version):
    """The newest CPython of that version from pyenv, or pythonVERSION of the path."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = sorted(root.glob(f"{version}.*/bin/python{version}"))
    candidates = [*map(str, reversed(found)), shutil.which(f"python{version}")]
    for candidate in filter(None, candidates):
        answer = subprocess.run(
            [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.stdout.strip() == version:
            return candidate
    return None


def skip(reason):
    print(f"skipped: {reason}")
    return 77


def main(version, build, folder, *more):
    python = interpreter(version)
    if python is None:
        return skip(f"no CPython {version} here")
    venv = pathlib.Path(build) / "tests" / "venv" / version
    own = venv / "bin" / "python"
    if (
        not own.exists()
        and subprocess.run([python, "-m", "venv", str(venv)], check=False).returncode
    ):
        return skip(f"CPython {version} cannot make a virtual environment")
    if subprocess.run(
        [own, "-c", "import pytest, numpy"], capture_output=True, check=False
    ).returncode:
        install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*install, "pytest"], check=False).returncode:
            return skip("pytest cannot be installed")
        # Where these are absent, stand-ins serve or a test is skipped.
        subprocess.run([*install, "numpy"], check=False)
        if version == "3.12":
            subprocess.run([*install, "pybind11", "nanobind"], check=False)
    # The environment's site packages stay as they are; ours come by PYTHONPATH.
    return subprocess.run(
        [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder, *more], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
