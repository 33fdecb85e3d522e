# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Runs Python cases: run_python.py ID…; several share one process, since a framework takes seconds to
import. Each part runs twice: a warm-up, then under the label "ID case" or "ID control", which its
findings carry. A file has the functions case() and control(); what it does at import is set-up. With
`cold = True` there is no warm-up and the control comes first.
Status: 77 where the framework or a GPU is missing, 4 where a case's own statement does not hold."""

import importlib.util
import pathlib
import sys
import traceback

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent), str(FOLDER.parent.parent.parent / "python")]

import hostwait  # noqa: E402: the folder is known only now


def load(case_id):
    (path,) = FOLDER.glob(f"{case_id}_*.py")
    spec = importlib.util.spec_from_file_location(case_id.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(case_id):
    """True where both parts came to their end."""
    try:
        module = load(case_id)
        cold = getattr(module, "cold", False)
        for part in ("control", "case") if cold else ("case", "control"):
            for label in (part,) if cold else ("warm-up", part):
                # A frame of the process: autograd's threads carry the label too.
                with hostwait.guard("log", "all", f"{case_id} {label}", process=True):
                    kept = getattr(module, part)()
                module.settle()
                del kept
    except Exception:  # noqa: BLE001: whatever it is, the next case still runs
        traceback.print_exc()
        return False
    print(f"ran {case_id}", flush=True)
    return True


def main():
    results = [run(case_id) for case_id in sys.argv[1:]]
    return 0 if all(results) else 4


if __name__ == "__main__":
    sys.exit(main())
