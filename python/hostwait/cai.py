# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python -m hostwait.cai check MODULE:OBJECT: does an exporting object obey the CUDA Array
Interface?

OBJECT is an array, or a function without arguments that makes one. Only with a function can the
slow-kernel test run: it fills the GPU with a spinning kernel, lets the function queue its work
behind it, synchronizes the exported stream, and looks whether the data still change afterwards.

Exit status: 0 nothing found, 1 violations, 2 wrong usage.
"""

import argparse
import importlib
import os
import sys

from . import _cai_driver, _cai_rules

ROUNDS = 3
SPIN_SECONDS = 0.05
LIMIT = 64 << 20  # bytes that are compared


def load(spec):
    """The object behind "module:attribute.path"."""
    module, _, path = spec.partition(":")
    if not module or not path:
        raise ValueError(f"{spec!r} is not MODULE:OBJECT")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def is_array(value):
    """Has it the attribute? A getter that raises counts: that is for the rules to say."""
    return (
        any("__cuda_array_interface__" in vars(base) for base in type(value).__mro__)
        or ("__cuda_array_interface__" in getattr(value, "__dict__", ()))
        or not callable(value)
    )


def span(judged):
    """(first byte, bytes) of the data, or None where the descriptor was not understood."""
    if not judged.pointer or judged.shape is None or judged.itemsize is None:
        return None
    low, high = 0, judged.itemsize
    steps = judged.strides
    if steps is None:
        return judged.pointer, judged.size() * judged.itemsize
    for step, n in zip(steps, judged.shape):
        low += min(0, step * (n - 1))
        high += max(0, step * (n - 1))
    return judged.pointer + low, high - low


def check_driver(judged, gpu):
    """Remarks that need a driver: is the memory reachable, does the stream exist?"""
    out = []
    if judged.pointer:
        kind = gpu.pointer_kind(judged.pointer)
        if kind is None:
            out.append(
                _cai_rules.remark(
                    "R4", "violation", "data[0]", "the driver does not know this memory"
                )
            )
    if judged.stream is not None and not gpu.stream_works(judged.stream):
        out.append(
            _cai_rules.remark(
                "R21", "violation", "stream", f"the driver does not know stream {judged.stream:#x}"
            )
        )
    return out


class slow_kernel_test:
    """R16 and R17: does synchronizing the exported stream suffice?"""

    def __init__(self, gpu, make):
        self.gpu = gpu
        self.make = make
        self.busy = gpu.stream()
        self.reader = gpu.stream()
        self.poisoned = 0
        self.host = None

    def snapshot(self, where, size):
        if self.host is None or len(self.host) < size:
            self.host = self.gpu.pinned(size)
        self.gpu.read(self.host, where, size, self.reader)
        return bytes(self.host[:size])

    def round(self, poison):
        """One run: "late" where the data changed after the synchronization, else "ready"; and the
        judge. `poison` is where the last run's data were, so that leftovers of equal value show."""
        gpu = self.gpu
        if poison is not None:
            gpu.fill(poison[0], 0xA5, poison[1], self.reader)
            gpu.synchronize(self.reader)
        gpu.spin(self.busy, SPIN_SECONDS, fill=True)
        array = self.make()
        judged = _cai_rules.check(array)
        where = span(judged)
        if where is None or where[1] == 0 or where[1] > LIMIT:
            gpu.synchronize_all()
            return None, judged, None
        self.poisoned += poison == where
        if judged.stream is not None:
            gpu.synchronize(judged.stream)
        before = self.snapshot(*where)
        gpu.synchronize_all()
        after = self.snapshot(*where)
        return ("late" if before != after else "ready"), judged, where

    def run(self):
        """Remarks, and a sentence on what the test can claim."""
        gpu = self.gpu
        gpu.spin(self.busy, 1e-6, fill=True)  # loads the kernel before it matters
        array = self.make()
        gpu.synchronize_all()
        judged = _cai_rules.check(array)
        where = span(judged)
        if where is None or judged.readonly:
            where = None  # never write into memory that others may read
        host_size = (where or (0, 1 << 20))[1]
        if 0 < host_size <= LIMIT:
            self.host = gpu.pinned(host_size)
        del array
        for _ in range(ROUNDS):
            verdict, judged, where = self.round(where)
            if verdict is None:
                return [], "slow-kernel test: not possible with this descriptor"
            if judged.readonly:
                where = None
            if verdict == "late":
                if judged.version is not None and judged.version < 3:
                    return [
                        _cai_rules.remark(
                            "R25",
                            "note",
                            "version",
                            "work was pending and the descriptor cannot say "
                            "so: consumers must order themselves by other means",
                        )
                    ], "slow-kernel test: done"
                rule, key = ("R16", "stream") if judged.stream is not None else ("R17", "stream")
                text = (
                    "the data changed after the exported stream was synchronized"
                    if judged.stream is not None
                    else "is None although work was pending"
                )
                return [_cai_rules.remark(rule, "violation", key, text)], "slow-kernel test: done"
        return [], (
            f"slow-kernel test: {ROUNDS} rounds, the data were final after the "
            f"synchronization (in {self.poisoned} of them over poisoned memory)"
        )


def dynamic(target, array, judged):
    """(remarks, sentences) of what needs a GPU."""
    try:
        gpu = _cai_driver.driver()
        gpu.make_current()
    except (OSError, AttributeError, _cai_driver.failed) as problem:
        return [], [
            f"not checked, no usable CUDA driver ({problem}): R4 reachability, R16, R17, R21"
        ]
    remarks = check_driver(judged, gpu)
    if gpu.simulated:
        return remarks, [
            "not checked on the simulated driver: R16, R17 (its kernels compute nothing)"
        ]
    if target is array:
        return remarks, ["not checked: R16, R17 (give a function that makes the array)"]
    try:
        found, sentence = slow_kernel_test(gpu, target).run()
    except _cai_driver.failed as problem:
        return remarks, [f"not checked: R16, R17 ({problem})"]
    return remarks + found, [sentence]


def run_check(spec, out=sys.stdout):
    target = load(spec)
    array = target if is_array(target) else target()
    judged = _cai_rules.check(array)
    remarks, sentences = dynamic(target, array, judged)
    remarks = judged.remarks + remarks
    for item in remarks:
        key = f" {item.key}" if item.key else ""
        print(f"{item.severity} {item.rule}{key}: {item.text}", file=out)
    for sentence in sentences:
        print(sentence, file=out)
    bad = sum(item.severity == "violation" for item in remarks)
    print(f"hostwait.cai: {spec}: {bad} violations, {len(remarks) - bad} notes", file=out)
    return 1 if bad else 0


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m hostwait.cai",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check an object or a function that makes one")
    check.add_argument("object", metavar="MODULE:OBJECT")
    arguments = parser.parse_args(argv)
    sys.path.insert(0, os.getcwd())
    try:
        return run_check(arguments.object)
    except (ImportError, AttributeError, ValueError) as problem:
        print(f"hostwait.cai: {arguments.object}: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
