# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Checks the vectors against README.md: counts, ids, keys, markers, names, action spellings."""

import json
import pathlib
import re
import sys

COUNTS = {
    "A": 15,
    "B": 24,
    "C": 27,
    "D": 21,
    "E": 14,
    "F": 12,
    "G": 30,
    "H": 11,
    "I": 11,
    "J": 12,
    "K": 13,
    "L": 15,
    "M": 24,
    "Q": 10,
}
VECTOR_KEYS = {"id", "title", "rules", "level", "applies_to", "note", "cases"}
CASE_KEYS = {
    "name",
    "object",
    "objects",
    "export",
    "dlpack_export",
    "dlpack_stream",
    "arrow",
    "do",
    "consumer",
    "policy",
    "environment",
    "driver",
    "producer_work_on",
    "expect",
}
OBJECT_KEYS = {"cai", "dlpack", "exchange_api", "dict", "buffer"}
MARKERS = {
    "$tuple",
    "$list",
    "$int",
    "$float",
    "$bytes",
    "$np.int64",
    "$np.uint64",
    "$ptr",
    "$stream",
    "$cuda_stream",
    "$object",
    "$self_masked",
    "$mapping",
    "$dict_subclass",
    "$method",
    "$raises",
    "$returns",
}
STEPS = {
    "parse",
    "resolve",
    "acquire",
    "acquire_from_dict",
    "release",
    "wait_host",
    "wait_host_then_enqueue",
    "element_strides",
    "launch",
    "raise",
    "drop_owner",
    "complete",
    "next_call",
    "finalize",
    "exit",
    "fork",
    "export",
    "parse_export",
    "dlpack_stream",
    "dlpack_export",
    "arrow_export",
    "arrow_release",
    "read_environment",
    "refresh_environment",
    "prepare_events",
}
STEP_OBJECTS = {
    "setenv",
    "acquire",
    "release",
    "begin_capture",
    "capture_elsewhere",
    "reset_context",
}
POLICY = {
    "lenient": {
        "list",
        "mapping",
        "no_version",
        "byteorder",
        "bytes_typestr",
        "none_pointer",
        "int_readonly",
        "stream_zero",
        "stream_object",
        "null_strides",
    },
    "legacy": {"none", "via_dlpack", "producer_current", "legacy_join", "device"},
    "ptds": {"trust", "legacy_join", "device", "reject"},
    "capture": {"error", "assume_ready", "external_event"},
    "mask": {"none", "bool", "bits"},
    "misaligned": {"flag", "reject"},
    "readonly": {"enforce", "ignore"},
    "sync": {"on", "off"},
    "back_edge": {"issue", "skip"},
    "prefer": {"cai", "dlpack"},
    "device": None,
    **dict.fromkeys(
        (
            "accept_newer",
            "accept_non_native",
            "check_extent",
            "check_stream_range",
            "pageable",
            "trust_implicit_order",
            "env_aliases",
            "capture_safe_producers",
            "stream_ignoring_producer",
        ),
        {True, False},
    ),
}
EXPECT_KEYS = {
    "verdict",
    "code",
    "key",
    "index",
    "driver_code",
    "exception",
    "view",
    "actions",
    "dict",
    "dlpack_calls",
    "capsules",
    "getter_calls",
    "stats",
    "warned",
    "message_names",
    "context_after",
    "event_contexts",
    "driver_errors",
    "driver_calls",
    "ordering_calls",
    "unsafe_calls",
    "capture_survives",
    "event_shared_with_cache",
    "covers",
    "owner",
    "destroyed_events",
    "driver_calls_after_main",
    "round_trip",
    "stream",
    "source",
}
ACTION = re.compile(
    r"NONE|ELIDE|COPY|DLPACK_REFUSED|(?:WAIT|BACK|EXTERNAL)\((?P<x>\S+)->(?P<y>\S+)\)"
    r"|(?:HOST|DLPACK|RECORD)\((?P<z>\S+)\)"
    r"|WAIT_EVENT\((?P<e>\w+)->(?P<w>\S+)\)|HOST_EVENT\((?P<h>\w+)\)"
)


class checker:
    """Collects what is wrong; `where` is the vector being read."""

    def __init__(self, folder):
        self.folder = folder
        self.world = json.loads((folder / "world.json").read_text())
        self.problems = []
        self.where = ""

    def say(self, text):
        self.problems.append(f"{self.where}: {text}")

    def known(self, keys, allowed, what):
        for key in set(keys) - set(allowed):
            self.say(f"unknown {what} {key!r}")

    def stream(self, name):
        base, _, context = name.partition("@")
        streams = {"1", "2", "null", *self.world["streams"], *self.world["destroyed_streams"]}
        if base not in streams | set(self.world["contexts"]):
            self.say(f"unknown stream {name!r}")
        if context and context not in self.world["contexts"]:
            self.say(f"unknown context {context!r}")

    def value(self, value):
        if isinstance(value, list):
            self.say("a bare JSON array as a value: write $tuple or $list")
        if not isinstance(value, dict):
            return
        marker = next((key for key in value if key.startswith("$")), None)
        if marker is None:
            for item in value.values():
                self.value(item)
            return
        inner = value[marker]
        if marker not in MARKERS or set(value) - {marker, "offset"}:
            self.say(f"unknown marker {sorted(value)}")
        elif marker in ("$tuple", "$list", "$returns"):
            for item in inner:
                self.value(item)
        elif marker == "$ptr" and inner not in self.world["memory"]:
            self.say(f"unknown memory {inner!r}")
        elif marker in ("$stream", "$cuda_stream"):
            self.stream(inner)
        elif marker == "$int":
            int(inner)
        elif marker == "$object":
            self.object(inner)
        elif marker not in ("$bytes", "$raises", "$float"):
            self.value(inner)

    def object(self, spec):
        self.known(spec, OBJECT_KEYS, "key of object")
        for key in ("cai", "dict"):
            self.value(spec.get(key))

    def policy(self, policy):
        self.known(policy, POLICY, "policy")
        for key, chosen in policy.items():
            allowed = POLICY.get(key)
            for item in chosen if isinstance(chosen, list) else [chosen]:
                if allowed is not None and item not in allowed:
                    self.say(f"unknown value {item!r} of policy {key}")

    def steps(self, steps):
        for step in steps:
            if isinstance(step, dict):
                if not STEP_OBJECTS & set(step):
                    self.say(f"unknown step {step}")
            elif step not in STEPS:
                self.say(f"unknown step {step!r}")

    def expect(self, expect):
        self.known(expect, EXPECT_KEYS, "expectation")
        verdict = expect.get("verdict")
        if verdict not in ("accept", "error", "raise"):
            self.say(f"unknown verdict {verdict!r}")
        if (verdict == "error") != ("code" in expect) or (verdict == "raise") != (
            "exception" in expect
        ):
            self.say("an error has a code, a raise an exception")
        for action in expect.get("actions", []):
            match = ACTION.fullmatch(action)
            if not match:
                self.say(f"unknown action {action!r}")
                continue
            for group in ("x", "y", "z", "w"):
                if match[group]:
                    self.stream(match[group])

    def case(self, case):
        self.known(case, CASE_KEYS, "key of case")
        requests = {"object", "objects", "export", "dlpack_export", "dlpack_stream", "arrow"} & set(
            case
        )
        if len(requests) != 1:
            self.say(f"a case has exactly one input, not {sorted(requests)}")
        for spec in [case["object"]] if "object" in case else case.get("objects", []):
            self.object(spec)
        stream = case.get("consumer", {}).get("stream")
        if isinstance(stream, str):
            self.stream(stream)
        for name in case.get("driver", {}).get("capture", {}):
            self.stream(name)
        self.policy(case.get("policy", {}))
        self.steps(case["do"])
        self.expect(case["expect"])

    def vector(self, vector):
        self.known(vector, VECTOR_KEYS, "key")
        for key in VECTOR_KEYS - {"note"} - set(vector):
            self.say(f"{key} is missing")
        for rule in vector["rules"]:
            if not re.fullmatch(r"R([1-9]|[12]\d|30)", rule):
                self.say(f"unknown rule {rule!r}")
        if (
            vector["level"] not in ("N", "D", "P")
            or not vector["applies_to"]
            or not vector["cases"]
        ):
            self.say("level, applies_to or cases is wrong")
        self.known(vector["applies_to"], ("python", "c", "cpp"), "surface")
        for case in vector["cases"]:
            self.case(case)

    def run(self):
        seen = set()
        for group, count in COUNTS.items():
            self.where = f"{group.lower()}.json"
            data = json.loads((self.folder / self.where).read_text())
            if data["schema"] != "hostwait.cai-vectors/1" or data["group"] != group:
                self.say("schema or group is wrong")
            ids = [vector["id"] for vector in data["vectors"]]
            if ids != [f"{group}{number:02}" for number in range(1, count + 1)]:
                self.say(f"ids are not {group}01 to {group}{count:02} in order")
            for vector in data["vectors"]:
                self.where = vector["id"]
                if vector["id"] in seen:
                    self.say("the id is used twice")
                seen.add(vector["id"])
                self.vector(vector)
        return seen


def main(argv):
    check = checker(pathlib.Path(argv[1]) if len(argv) > 1 else pathlib.Path(__file__).parent)
    seen = check.run()
    for problem in check.problems:
        print(problem, file=sys.stderr)
    print(f"{len(seen)} vectors, {len(check.problems)} problems")
    return 1 if check.problems or len(seen) != sum(COUNTS.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
