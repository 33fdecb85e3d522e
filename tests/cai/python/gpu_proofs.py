# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Several proofs in one process, since starting four frameworks takes longer than most of them:
gpu_proofs.py NAME…, of capture, host, checker, cost, probes, values. Each also runs by itself, as
gpu_NAME.py. gpu_unstopped.py needs a process with the preloaded library.
"""

import importlib
import sys

import proof

sys.path.append(str(proof.REPO / "tests" / "cai"))


def run(out, gpu):
    for name in sys.argv[1:]:
        out.attempt(name, importlib.import_module(f"gpu_{name}").run, out, gpu)
        out.attempt(name, gpu.synchronize_all)


if __name__ == "__main__":
    proof.script(run)
