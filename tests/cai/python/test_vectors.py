# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Every vector that Python objects can express, against the glue; the others with the reason."""

import json
import pathlib
import re

import pytest
from runner import FLAG_NAMES, case_runner

from hostwait import _cai_abi as abi

FOLDER = pathlib.Path(__file__).parent.parent / "vectors"
WORLD = json.loads((FOLDER / "world.json").read_text())
GROUPS = "abcdefghijklmq"
VECTORS = {
    vector["id"]: vector
    for group in GROUPS
    for vector in json.loads((FOLDER / f"{group}.json").read_text())["vectors"]
}

# Not run here, and why. Everything else runs.
ELSEWHERE = {
    **dict.fromkeys(("G24", "G25", "L05", "L06"), "needs a C++ caller: the C++ tests run it"),
    **dict.fromkeys(
        (f"Q{n:02}" for n in range(1, 11)), "Arrow has no Python object: the C tests run it"
    ),
}
CASES = [
    pytest.param(vector_id, number, id=f"{vector_id}-{case.get('name', number)}")
    for vector_id, vector in VECTORS.items()
    if vector_id not in ELSEWHERE
    for number, case in enumerate(vector["cases"])
]


def normal(action):
    return action.replace("@ctx0", "")


def check_actions(expected, segments):
    """The steps in order, the actions of one step in any order."""
    wanted = [normal(action) for action in expected if action not in ("NONE", "ELIDE")]
    for segment in segments:
        happened = sorted(map(normal, segment))
        assert happened == sorted(wanted[: len(segment)])
        del wanted[: len(segment)]
    assert wanted == []


def check_view(expected, runner):
    view = runner.views[0]
    desc = abi.desc.from_buffer_copy(view.desc)
    loc = getattr(runner.outcome, "loc", None)
    value = runner.maker.value
    for key, wanted in expected.items():
        if key in ("shape", "strides"):
            found = list(getattr(desc, key)[: desc.ndim])
        elif key == "flags":
            assert all(desc.flags & abi.FLAGS[FLAG_NAMES.get(name, name)] for name in wanted), key
            continue
        elif key == "not_flags":
            assert not any(desc.flags & abi.FLAGS[name] for name in wanted), key
            continue
        elif key == "extent":
            found = [desc.lo, desc.hi]
        elif key == "ptr":
            found, wanted = desc.ptr, value(wanted)
        elif key in ("kind", "byteorder", "unit"):
            found = getattr(desc, key).decode()
        elif key == "readonly":
            found = bool(desc.readonly)
        elif key == "has_mask":
            found = view.mask is not None
        elif key == "source":
            found = view.source
        elif key in ("memory", "device", "usable_ptr"):
            loc = loc or abi.loc.from_buffer_copy(view.locate(runner.policy))
            found = {"memory": abi.MEMORY[loc.kind], "device": loc.device, "usable_ptr": loc.ptr}[
                key
            ]
            wanted = value(wanted)
        else:
            found = getattr(desc, key)
        assert found == wanted, key


def check_dict(expected, runner):
    found = runner.outcome.dict
    for key, wanted in expected.items():
        if key == "absent":
            assert not set(wanted) & set(found)
        elif key == "keys":
            assert sorted(found) == wanted
        else:
            assert found[key] == runner.maker.value(wanted), key
            assert type(found[key]) is type(runner.maker.value(wanted)), key


def check_calls(expected, runner):
    """The calls of __dlpack__ that order something."""
    calls = [
        call
        for producer in runner.maker.producers
        for call in producer.calls
        if call.get("stream") != -1
    ]
    wanted = [{key: runner.maker.value(item) for key, item in call.items()} for call in expected]
    if any("max_version" in call for call in wanted):
        assert [set(call) for call in calls] == [set(call) for call in wanted]
    assert [call["stream"] for call in calls] == [call["stream"] for call in wanted]


def check_error(expect, problem):
    assert getattr(problem, "code", None) == expect["code"], problem
    if "key" in expect:
        assert problem.key == expect["key"]
    if "index" in expect:
        assert problem.index == expect["index"]
    if "driver_code" in expect:
        assert problem.driver == expect["driver_code"]
    for name in expect.get("message_names", ()):
        assert re.search(rf"\b{name}\b", str(problem))


def check_rest(expect, runner):
    driver, out = runner.driver, runner.outcome
    for name, wanted in expect.get("stats", {}).items():
        assert out.stats[name] == wanted, name
    for name in ("round_trip", "stream"):
        if name in expect:
            assert out.values[name] == expect[name]
    if "getter_calls" in expect:
        assert runner.maker.getter_calls == expect["getter_calls"]
    if "capsules" in expect:
        made = sum(producer.made for producer in runner.maker.producers)
        deleted = sum(producer.deleted for producer in runner.maker.producers)
        assert {"made": made, "deleted": deleted} == expect["capsules"]
    if "context_after" in expect:
        top = driver.top()
        assert (top and driver.context_names[top]) == expect["context_after"]
    if "event_contexts" in expect:
        assert driver.event_contexts == expect["event_contexts"]
    if "driver_errors" in expect:
        # A retired owner's event dies with its context; asking for it is the way to find out.
        failures = [item for item in driver.failures if item[0] != "event_query"]
        assert len(failures) == expect["driver_errors"], failures
    if "ordering_calls" in expect:
        ordering = ("event_record", "stream_wait_event", "event_synchronize", "ctx_synchronize")
        assert [call for call in driver.calls if call in ordering] == []
    if "unsafe_calls" in expect:
        assert driver.unsafe == expect["unsafe_calls"]
    if expect.get("capture_survives"):
        assert not driver.capture_broken
    if "child" in out.values:
        assert out.values["child"] == 0
    owner = expect.get("owner", {})
    if owner.get("dropped_with_gil"):
        assert out.values == {"alive_while_running": True, "alive_after": False}
    if owner.get("leaked"):
        assert out.values == {"leaked": True, "calls_while_finalizing": 0}


@pytest.mark.parametrize("vector_id, number", CASES)
def test_vector(vector_id, number):
    case = VECTORS[vector_id]["cases"][number]
    expect = case["expect"]
    runner = case_runner(WORLD, case)
    try:
        out = runner.run()
        if vector_id == "I10":  # the error is the child's
            check_rest({}, runner)
            return
        if out.verdict != expect["verdict"] and out.exception is not None:
            raise out.exception
        assert out.verdict == expect["verdict"]
        if expect["verdict"] == "error":
            check_error(expect, out.exception)
        elif expect["verdict"] == "raise":
            assert type(out.exception).__name__ == expect["exception"]
        if "actions" in expect:
            check_actions(expect["actions"], out.segments)
            if expect["actions"] == ["ELIDE"]:
                assert out.stats["elided"] == 1
        if "view" in expect:
            check_view(expect["view"], runner)
        if "dict" in expect:
            check_dict(expect["dict"], runner)
        if "dlpack_calls" in expect:
            check_calls(expect["dlpack_calls"], runner)
        check_rest(expect, runner)
    finally:
        runner.clean_up()


@pytest.mark.parametrize("vector_id", sorted(ELSEWHERE))
def test_elsewhere(vector_id):
    assert "python" not in VECTORS[vector_id]["applies_to"] or vector_id[0] == "Q"
    pytest.skip(ELSEWHERE[vector_id])


def test_all_vectors_are_accounted_for():
    assert len(VECTORS) == 239
    assert {
        vector_id for vector_id, vector in VECTORS.items() if "python" not in vector["applies_to"]
    } == set(ELSEWHERE)
