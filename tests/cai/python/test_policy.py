# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""The package's policy functions, without the preloaded library and with it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import hostwait

SHIM = pathlib.Path(os.environ.get("HOSTWAIT_TEST_BUILD", "")) / "lib" / "libhostwait.so"


def test_everything_works_without_the_shim():
    assert hostwait.present() is False
    with hostwait.guard("error"), hostwait.guard("log", "copy, explicit", label="x", process=True):
        with hostwait.allow("declared"):
            pass
    hostwait.step()
    hostwait.steady()
    assert hostwait.stats() is None
    assert hostwait.last_refused() is None


def test_kinds():
    assert hostwait.kinds_of("sync") == hostwait.SYNC == 0x3F
    assert hostwait.kinds_of("copy,explicit") == 0xF
    assert hostwait.kinds_of(["free", "host_free"]) == 0xC0
    assert hostwait.kinds_of(0x11) == 0x11
    with pytest.raises(ValueError, match="unknown kind 'wait'"):
        hostwait.kinds_of("wait")
    with pytest.raises(ValueError, match="unknown action"):
        hostwait.guard("refuse")


def with_shim(code):
    if not SHIM.exists():
        pytest.skip("the preloaded library is not built")
    environment = {
        **os.environ,
        "LD_PRELOAD": str(SHIM),
        "PYTHONPATH": str(pathlib.Path(hostwait.__file__).parent.parent),
    }
    out = subprocess.run(
        [sys.executable, "-c", "import hostwait, json\n" + code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def test_guards_nest_under_the_shim():
    out = with_shim("""
first = hostwait.guard("error")
with first:
    with first, hostwait.allow("why"):
        pass
stats = hostwait.stats()
print(json.dumps([hostwait.present(), stats["mismatched_pops"], hostwait.last_refused()]))
""")
    assert out == [True, 0, None]


def test_unarmed_kinds_are_refused_aloud():
    out = with_shim("""
try:
    hostwait.guard("log", "poll").__enter__()
except hostwait.error as problem:
    print(json.dumps([problem.code, str(problem)]))
""")
    assert out[0] == -1 and "armed at start" in out[1]


def test_a_guard_ends_with_an_exception():
    out = with_shim(
        """
try:
    with hostwait.guard("fail"):
        raise KeyError
except KeyError:
    pass
with hostwait.guard("fail"):
    pass
print(json.dumps(hostwait.stats()["mismatched_pops"]))
"""
    )
    assert out == 0
