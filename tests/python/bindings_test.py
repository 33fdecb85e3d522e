# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""cuda-bindings on the simulated driver under hostwait: waits, copies and frees are seen; waits and
copies are refused; frees are made and reported."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CLIENT = pathlib.Path(__file__).resolve().parent / "bindings_on_sim.py"
TOOL = os.environ["HOSTWAIT_TOOL"]

# What the client calls that can wait: driver name -> (kind, calls).
WAITS = {"cuEventSynchronize": ("event_sync", 1), "cuStreamSynchronize": ("stream_sync", 1),
         "cuCtxSynchronize": ("device_sync", 1)}
COPIES = {"cuMemcpyDtoHAsync": ("async_copy", 1), "cuMemcpyDtoH": ("copy", 1)}
FREES = {"cuMemFreeHost": ("host_free", 1), "cuMemFree": ("free", 1)}


def base_name(symbol):
    for suffix in ("_ptds", "_ptsz"):
        symbol = symbol.removesuffix(suffix)
    return symbol.rsplit("_v", 1)[0] if symbol.rsplit("_v", 1)[-1].isdigit() else symbol


class Bindings(unittest.TestCase):
    def under(self, *options, client=()):
        """(status, output, {driver name: summed finding}) of the client under hostwait run."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [TOOL, "run", "--output", folder, *options, "--", sys.executable, CLIENT, *client],
                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
            records = sorted(map(str, pathlib.Path(folder).glob("*.hwr")))
            self.assertEqual(len(records), 1, done.stderr)
            report = json.loads(subprocess.run(
                [TOOL, "report", "--format", "json", *records], capture_output=True, text=True,
                timeout=120, check=True).stdout)
        found = {}
        for finding in report["findings"]:
            for call in finding["call"].split(" + "):
                entry = found.setdefault(base_name(call), dict(kind=finding["kind"], calls=0,
                                                               refused=0, violations=0))
                for name in ("calls", "refused", "violations"):
                    entry[name] += finding[name]
        return done.returncode, done.stdout, found

    def test_seen(self):
        status, output, found = self.under()
        self.assertEqual(status, 0, output)
        for call, (kind, calls) in {**WAITS, **COPIES, **FREES}.items():
            self.assertIn(call, found)
            # A copy and the wait after it from one Python frame can share a row and its kind.
            if call not in WAITS:
                self.assertEqual(found[call]["kind"], kind)
            self.assertGreaterEqual(found[call]["calls"], calls, call)
            self.assertEqual(found[call]["violations"], 0, call)

    def test_same_output_without(self):
        alone = subprocess.run([sys.executable, CLIENT], capture_output=True, text=True,
                               stdin=subprocess.DEVNULL, timeout=120, check=False)
        self.assertEqual(alone.returncode, 0, alone.stdout + alone.stderr)
        # Handles are printed and differ between processes: only the steps and their answers.
        def steps(text):
            return [line for line in text.splitlines() if not line.startswith("  =")]
        self.assertEqual(steps(self.under()[1]), steps(alone.stdout))

    def test_refused(self):
        status, output, found = self.under("--level", "error@sync", client=["--refused"])
        self.assertEqual(status, 86, output)
        self.assertIn("unexpected answers: 0", output)
        for call in {**WAITS, **COPIES}:
            self.assertGreaterEqual(found[call]["refused"], 1, call)

    def test_frees_are_made_and_reported(self):
        status, output, found = self.under("--level", "error@free,host_free")
        self.assertEqual(status, 86, output)
        self.assertIn("unexpected answers: 0", output)
        for call in FREES:
            self.assertEqual(found[call]["refused"], 0, call)
            self.assertGreaterEqual(found[call]["violations"], 1, call)


if __name__ == "__main__":
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        print("skipped: this interpreter has no cuda-bindings")
        sys.exit(77)
    unittest.main()
