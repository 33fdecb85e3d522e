# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python -m hostwait.cai check: its rules against the vectors, and the command itself."""

import os
import pathlib
import subprocess
import sys

import pytest
from fake_driver import fake_driver
from objects import maker
from test_vectors import VECTORS, WORLD

from hostwait import _cai_rules

# Refused by a consumer's policy or for its intent, while the producer obeys the text.
CONSUMER_ONLY = {
    "B03",
    "B10",
    "B11",
    "B18",
    "C20",
    "C21",
    "C25",
    "C26",
    "D02",
    "D13",
    "D14",
    "D17",
    "E07",
    "F06",
    "F10",
    "G23",
    "G27",
    "I08",
    "E06",
    "A15",
}
# Refused by the strict consumer as a policy (level P), and no violation of the text.
STRICT_ONLY = {"G07", "G22", "G26"}
# The producer is wrong, the consumer cannot or need not notice.
PRODUCER_ONLY = {"D08"}


def cases():
    for vector_id, vector in VECTORS.items():
        if vector_id[0] in "ABCDEFG" and "python" in vector["applies_to"]:
            for number, case in enumerate(vector["cases"]):
                if not case.get("policy", {}).get("lenient") and "object" in case:
                    yield pytest.param(vector_id, case, id=f"{vector_id}-{number}")


@pytest.mark.parametrize("vector_id, case", list(cases()))
def test_violations_are_the_strict_errors(vector_id, case):
    if "dict" in case["object"] or vector_id in STRICT_ONLY:
        pytest.skip("no producer's violation")
    made = maker(WORLD, fake_driver(WORLD))
    target = made.object(case["object"])
    try:
        remarks = _cai_rules.check(target).remarks
    except RuntimeError:
        assert case["expect"]["verdict"] == "raise"
        return
    violations = [item for item in remarks if item.severity == "violation"]
    expected = (
        case["expect"]["verdict"] == "error"
        and case["expect"]["code"] not in ("capture_boundary", "driver")
        and vector_id not in CONSUMER_ONLY
    )
    assert bool(violations) == (expected or vector_id in PRODUCER_ONLY), remarks
    if violations and vector_id not in PRODUCER_ONLY:
        rules = {item.rule for item in violations}
        assert rules & set(VECTORS[vector_id]["rules"]), (rules, VECTORS[vector_id]["rules"])


@pytest.mark.parametrize(
    "vector_id, text",
    [
        ("E03", "R25"),
        ("C16", "C-contiguous"),
        ("D20", "offset"),
        ("B03", "big-endian"),
        ("D13", "aligned"),
    ],
)
def test_legal_but_unhelpful_is_a_note(vector_id, text):
    made = maker(WORLD, fake_driver(WORLD))
    remarks = _cai_rules.check(made.object(VECTORS[vector_id]["cases"][0]["object"])).remarks
    assert [item.severity for item in remarks] == ["note"]
    assert text in " ".join(map(str, remarks[0]))


def test_getter_that_changes_its_mind_is_noted():
    answers = iter(range(2))

    class fickle:
        @property
        def __cuda_array_interface__(self):
            return {"shape": (next(answers),), "typestr": "<f4", "data": (0, False), "version": 3}

    assert any("read again" in item.text for item in _cai_rules.check(fickle()).remarks)


MODULE = """
class array:
    def __init__(self, **changes):
        self.content = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3,
                        **changes}
    @property
    def __cuda_array_interface__(self):
        return self.content
good = array()
bad = array(stream=0, shape=[4])
make = lambda: array()
class holder:
    inner = array(version="3")
"""


def run(folder, *arguments, driver=None):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(pathlib.Path(_cai_rules.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        ),
    }
    environment["LD_LIBRARY_PATH"] = driver or ""
    return subprocess.run(
        [sys.executable, "-m", "hostwait.cai", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arrays.py").write_text(MODULE)
    return tmp_path


def test_command_reports_rules_and_status(folder):
    good, bad = run(folder, "check", "arrays:good"), run(folder, "check", "arrays:bad")
    assert "arrays:good: 0 violations" in good.stdout
    assert bad.returncode == 1
    assert "violation R11 stream: is 0" in bad.stdout
    assert "violation R2 shape: is a list" in bad.stdout


def test_command_takes_functions_and_paths(folder):
    assert "0 violations" in run(folder, "check", "arrays:make").stdout
    assert "violation R6 version" in run(folder, "check", "arrays:holder.inner").stdout


@pytest.mark.parametrize("spec", ["arrays", "arrays:none", "no_such_module:x", ":x"])
def test_command_with_wrong_usage(folder, spec):
    result = run(folder, "check", spec)
    assert result.returncode == 2
    assert result.stderr.startswith("hostwait.cai: ")


def test_command_says_what_could_not_be_checked_without_a_driver(folder):
    """A folder with a libcuda.so.1 that cannot be loaded hides any real one."""
    (folder / "libcuda.so.1").write_text("not a library")
    result = run(folder, "check", "arrays:make", driver=str(folder))
    assert "not checked, no usable CUDA driver" in result.stdout
    assert "R16" in result.stdout


def test_command_on_the_simulated_driver(folder):
    sim = pathlib.Path(os.environ.get("HOSTWAIT_TEST_BUILD", "")) / "lib" / "sim"
    if not (sim / "libcuda.so.1").exists():
        pytest.skip("the simulated driver is not built")
    result = run(folder, "check", "arrays:make", driver=str(sim))
    assert "not checked on the simulated driver: R16, R17" in result.stdout
    assert "violation R4 data[0]: the driver does not know this memory" in result.stdout
