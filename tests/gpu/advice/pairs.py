# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Runs the pairs of an example file: each first unseen (first uses load things), then behind work of
the GPU, under the label "NAME before" or "NAME after"."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import hostwait  # noqa: E402: the folder is known only now


def run(pairs, busy, settle):
    """pairs: {name: (before, after)}; busy() queues work, settle() waits for all of it."""
    with hostwait.allow("set-up"):
        for name, bodies in pairs.items():
            for which, body in zip(("before", "after"), bodies, strict=True):
                settle()
                body()
                settle()
                busy()
                with hostwait.guard("log", "all", label=f"{name} {which}"):
                    body()
                settle()
                print(f"ran {name} {which}", flush=True)
