# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The proofs' own judgement, on made-up counts and lines: a difference without a reason must not pass,
nor may results that nobody produced."""

import ctypes
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cupti_compare  # noqa: E402: the folder is known only now
import record  # noqa: E402
from harness import Ran  # noqa: E402
from proofs import same_output  # noqa: E402

LINES = """driver\tcuStreamSynchronize\t7\t3\t3\t9000000\t4000000
driver\tcuMemcpyDtoH_v2\t4\t4\t4\t800000\t500000
driver\tcuMemAlloc_v2\t2\t1\t1\t300000\t200000
driver\tcuLaunchKernel\t100\t1\t1\t900000\t90000
driver\tcuInit\t1\t1\t1\t900000\t900000
sync\tstream\t7
sync\tevent\t0
sync\tcontext\t0
"""
# Calls as the record counts them: symbol, kind, verdict, calls.
CALLS = [("cuStreamSynchronize", 1, 1, 7), ("cuMemcpyDtoH_v2", 3, 2, 4)]


def write_record(path, calls):
    """A record with one site and one counter per call."""
    strings = bytearray(b"\0")
    call_entries, sites, counters = bytearray(), bytearray(), bytearray()
    for number, (symbol, kind, verdict, count) in enumerate(calls):
        call_entries += bytes(record.Call(name=len(strings), kind=kind))
        strings += symbol.encode() + b"\0"
        sites += bytes(record.Site(call=number, verdict=verdict))
        counters += bytes(record.Counters(site=number, calls=count, waited=count))
    header = record.Header(magic=b"HOSTWAIT", major=1, header_bytes=4096)
    body = bytearray()
    for number, (section, data, size) in enumerate(
            ((record.STRINGS, strings, 1), (record.CALLS, call_entries, ctypes.sizeof(record.Call)),
             (record.SITES, sites, ctypes.sizeof(record.Site)),
             (record.COUNTERS, counters, ctypes.sizeof(record.Counters)))):
        header.extents[number] = record.Extent(id=section, entry_size=size,
                                               offset=4096 + len(body), count=len(data) // size)
        body += data.ljust((len(data) + 63) // 64 * 64, b"\0")
        header.extent_count = number + 1
    path.write_bytes(bytes(header).ljust(4096, b"\0") + body)


class Compare(unittest.TestCase):
    def compared(self, lines=LINES, calls=tuple(CALLS)):
        with tempfile.TemporaryDirectory() as folder:
            counts, made = pathlib.Path(folder, "c.tsv"), pathlib.Path(folder, "r.hwr")
            counts.write_text(lines)
            write_record(made, calls)
            return cupti_compare.compare([counts], [made])

    def test_every_difference_has_its_reason(self):
        agreed, explained, unexplained = self.compared()
        self.assertEqual(unexplained, [])
        self.assertTrue(any("cuStreamSynchronize" in line for line in agreed))
        for symbol in ("cuMemAlloc_v2", "cuLaunchKernel", "cuInit"):
            self.assertTrue(any(line.startswith(symbol) for line in explained), symbol)

    def test_a_missed_explicit_wait_is_unexplained(self):
        _, _, unexplained = self.compared(calls=[("cuStreamSynchronize", 1, 1, 6), CALLS[1]])
        self.assertTrue(any(line.startswith("cuStreamSynchronize") for line in unexplained))

    def test_a_missed_copy_is_unexplained(self):
        _, _, unexplained = self.compared(calls=CALLS[:1])
        self.assertTrue(any(line.startswith("cuMemcpyDtoH_v2") for line in unexplained))

    def test_a_call_within_its_own_cost_is_explained(self):
        lines = LINES.replace("cuMemcpyDtoH_v2\t4\t4\t4", "cuMemcpyDtoH_v2\t4\t4\t0")
        _, explained, unexplained = self.compared(lines, CALLS[:1])
        self.assertEqual(unexplained, [])
        self.assertTrue(any(line.startswith("cuMemcpyDtoH_v2") for line in explained))

    def test_an_unknown_function_is_unexplained(self):
        _, _, unexplained = self.compared(LINES + "driver\tcuNobodyKnows\t1\t1\t1\t90000\t90000\n")
        self.assertTrue(any(line.startswith("cuNobodyKnows") for line in unexplained))

    def test_a_call_that_only_hostwait_saw_is_unexplained(self):
        _, _, unexplained = self.compared(calls=[*CALLS, ("cuEventSynchronize", 2, 1, 1)])
        self.assertTrue(any(line.startswith("cuEventSynchronize") for line in unexplained))

    def test_missing_synchronization_records_are_named(self):
        _, explained, unexplained = self.compared(LINES.replace("sync\tstream\t7", "sync\tstream\t5"))
        self.assertEqual(unexplained, [])
        self.assertTrue(any("type stream" in line for line in explained))


class PlayedSession:
    """What same_output needs of a session; the programs print these texts in turn."""

    def __init__(self, *texts):
        self.texts, self.kept, self.failures = list(texts), {}, []

    def run(self, _):
        return Ran(0, self.texts.pop(0), "", 0.0)

    hostwait = run

    def skip(self, *_):
        pass

    def check(self, name, good, _=""):
        if not good:
            self.failures.append(name)


class SameOutput(unittest.TestCase):
    def failures(self, *texts):
        session = PlayedSession(*texts)
        same_output(session, "p", ["p"])
        return session.failures

    def test_the_same_lines_pass(self):
        self.assertEqual(self.failures(*["a\t1\nb\terror X\n"] * 3), [])

    def test_another_result_fails(self):
        self.assertEqual(self.failures("a\t1\n", "a\t1\n", "a\t2\n"), ["p.bit_identical"])

    def test_without_a_stable_result_it_fails(self):
        for texts in (["a\terror X\n"] * 3, ["a\t1\n", "a\t2\n", "a\t2\n"], [""] * 3):
            self.assertEqual(self.failures(*texts), ["p.bit_identical"])


if __name__ == "__main__":
    unittest.main()
