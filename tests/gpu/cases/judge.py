# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""What a case's file expects, and whether the findings of a report meet it.

A file's head comment holds, for its parts `case` and `control`, either `expect PART: nothing` or one
or more `expect PART: {…}` in JSON, each for one finding of the report:

  kind, call, symbol, frame   which finding it is: kind; driver call without version and variant, as
                              regular expression over the joined calls; exact symbols; a function
                              (regular expression) that must stand in its native or Python stack
  at                          marker of the line: `here`, or NAME of `here NAME`. The finding's
                              innermost user line, unless innermost is false (library code that is
                              compiled into the user's program): then the innermost frame of the file
  verdict, reason, thread     regular expressions, matched in full
  runtime                     the runtime's call, regular expression
  calls, waited, latent, refused, held, violations
                              a number, or [least, most] with null for open
  above_ms, below_ms          bounds of the longest call
  sites                       how many findings it is about, as a number or [least, most]: their counts
                              are added. 1; in Python files [1, null], since one line of Python may
                              call at several places of a library
  optional                    true: the finding need not be there
  held_by                     {"call": …, "thread": …}: what held the call up, regular expressions

`expect captures: {…}` is about captures that a call broke: call, thread and at of the breaking call,
begun_at of the capture's begin, mode, and times: in how many runs (2, the warm-up and the part). A
thread means that another one began the capture. The report must be sure of it and hold the driver's
answer 900. No other capture may have been broken from the file's lines.

Every finding with the part's label must be named by one expectation. Left out of that: findings that
hostwait itself does not call waits (verdict none, depends, unmeasured) and that stayed less than
QUIET_MS, which no wait behind the cases' backlogs of 5 ms and more can be; and first use and
allocation (module, alloc, context), unless the case names that kind.

`options: …` are options of `hostwait run`; `alone: yes` gives the file a process of its own.
"""

import dataclasses
import json
import pathlib
import re

QUIET_MS = 4.0
COUNTS = ("calls", "waited", "latent", "refused", "held", "violations")
TIMED_COUNTS = ("waited", "latent", "held")
BY_TIME = ("none", "depends", "unmeasured")  # verdicts with which only time makes a finding
SIDE_KINDS = ("module", "alloc", "context")
KEYS = {"kind", "call", "symbol", "frame", "at", "innermost", "verdict", "reason", "thread", "runtime",
        "above_ms", "below_ms", "optional", "sites", "held_by", *COUNTS}
CAPTURE_KEYS = {"call", "thread", "at", "begun_at", "mode", "times"}
UNSUPPORTED = 900  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
FOLDER = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Case:
    """One file: its id, its expectations and its markers."""

    path: pathlib.Path
    id: str
    kind: str
    expected: dict  # part -> list of expectations
    captures: list  # expectations about broken captures
    markers: dict  # name -> lines
    options: list
    alone: bool  # needs a process of its own


def head_of(text):
    """The comment at the head, without comment signs, as one text."""
    lines = []
    for line in text.splitlines():
        found = re.match(r"^(?://|#)(?!!) ?(.*)$", line)
        if not found and lines:
            break
        if found:
            lines.append(found[1])
    return "\n".join(lines)


def read(path):
    """The case in a file. Raises ValueError with file and reason where its head is not understood."""
    path = pathlib.Path(path)
    text = path.read_text(encoding="utf-8")
    head = head_of(text)
    case_id = path.name.split("_")[0]
    title = re.search(rf"^{re.escape(case_id)}, (\w+), ", head, re.M)
    if not title:
        raise ValueError(f"{path}: the head has no line '{case_id}, KIND, PROJECT: LINK'")
    expected = {}
    for found in re.finditer(r"^expect (case|control|captures): ", head, re.M):
        part, rest = found[1], head[found.end():]
        into = expected.setdefault(part, [])
        if rest.startswith("nothing"):
            continue
        try:
            one, _ = json.JSONDecoder().raw_decode(rest)
        except ValueError as error:
            raise ValueError(f"{path}: expect {part}: {error}") from error
        known = CAPTURE_KEYS if part == "captures" else KEYS
        if set(one) - known or (known is KEYS and "kind" not in one):
            raise ValueError(f"{path}: expect {part}: unknown or missing keys in {one}")
        into.append(one)
    captures = expected.pop("captures", [])
    if set(expected) != {"case", "control"} or not expected["case"] + captures:
        raise ValueError(f"{path}: the head must expect something of case, and of control")
    markers = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"(?://|#) here(?: (\w+))?$", line)
        if found:
            markers.setdefault(found[1] or "here", set()).add(number)
    for one in [*expected["case"], *expected["control"], *captures]:
        for name in (one[key] for key in ("at", "begun_at") if key in one):
            if name not in markers:
                raise ValueError(f"{path}: no line is marked 'here {name}'")
    options = re.search(r"^options: (.*)$", head, re.M)
    return Case(path, case_id, title[1], expected, captures, markers,
                options[1].split() if options else [],
                bool(re.search(r"^alone: yes", head, re.M)))


def all_cases(suffix):
    """Every case in files with this suffix, by id."""
    return [read(path) for path in sorted(FOLDER.glob(f"[A-Z][A-Z]-[0-9][0-9]_*{suffix}"))]


def base(symbol):
    return re.sub(r"_v\d+$", "", re.sub(r"_(ptds|ptsz)$", "", symbol))


def calls_of(finding):
    return " + ".join(base(part) for part in finding["call"].split(" + "))


def frames(finding):
    return [*finding["python"], *finding["native"]]


def line_in(finding, path):
    """The line of the innermost frame in this file, Python before native; None where there is none."""
    for frame in frames(finding):
        if pathlib.PurePath(frame["file"]).name == path.name:
            return frame["line"]
    return None


def is_meant(one, case, finding):
    """Whether the expectation is about this finding."""
    if not re.fullmatch(one["kind"], finding["kind"]):
        return False
    if "call" in one and not re.fullmatch(one["call"], calls_of(finding)):
        return False
    if "symbol" in one and one["symbol"] != finding["call"]:
        return False
    if "frame" in one and not any(re.search(one["frame"], f["function"]) for f in frames(finding)):
        return False
    return "at" not in one or line_in(finding, case.path) in case.markers[one["at"]]


def bounds(value):
    least, most = value if isinstance(value, list) else (value, value)
    return least or 0, most


def wrong_in(one, case, finding, timed=True):
    """What of the finding differs from the expectation, as texts."""
    wrong = []
    for key in ("verdict", "reason"):
        if key in one and not re.fullmatch(one[key], finding[key]):
            wrong.append(f"{key} {finding[key]!r}, not {one[key]!r}")
    if "thread" in one and not any(re.fullmatch(one["thread"], t) for t in finding["thread_names"]):
        wrong.append(f"threads {finding['thread_names']}, not {one['thread']!r}")
    if "runtime" in one and not re.fullmatch(one["runtime"], finding["runtime_call"]):
        wrong.append(f"runtime call {finding['runtime_call']!r}, not {one['runtime']!r}")
    for key in COUNTS:
        if key not in one or (key in TIMED_COUNTS and not timed):
            continue
        least, most = bounds(one[key])
        if finding[key] < least or (most is not None and finding[key] > most):
            wrong.append(f"{key} {finding[key]}, not {one[key]}")
    longest = finding["ns"]["max"] / 1e6
    if timed and not one.get("above_ms", 0) <= longest <= one.get("below_ms", longest):
        wrong.append(f"longest {longest:.3f} ms, not above {one.get('above_ms', 0)} and below "
                     f"{one.get('below_ms', 'any')}")
    if "held_by" in one and timed and not any(
            re.fullmatch(one["held_by"]["call"], base(h["call"]))
            and re.fullmatch(one["held_by"].get("thread", ".*"), h["thread"])
            for h in finding["held_by"]):
        wrong.append(f"held by {finding['held_by']}, not {one['held_by']}")
    if "at" in one and one.get("innermost", True) and \
            not set(finding["lines"]) <= case.markers[one["at"]]:
        wrong.append(f"innermost user lines {finding['lines']}, not {sorted(case.markers[one['at']])}"
                     f" ({finding['where']})")
    return wrong


def is_quiet(finding, named_kinds, timed=True):
    """Noise and set-up that no part is judged by."""
    if finding["kind"] in SIDE_KINDS and not any(re.fullmatch(k, finding["kind"]) for k in named_kinds):
        return True
    return (finding["verdict"] in BY_TIME and finding["violations"] == 0
            and not (timed and finding["ns"]["max"] / 1e6 >= QUIET_MS))


def text_of(finding):
    return (f"{finding['kind']} {finding['call']} {finding['verdict']} {finding['reason']} "
            + " ".join(f"{key}={finding[key]}" for key in COUNTS)
            + f" max {finding['ns']['max'] / 1e6:.3f} ms at {finding['where']}")


def added(findings):
    """Several findings of one expectation as one: counts added, the rest of the longest."""
    longest = max(findings, key=lambda f: f["ns"]["max"])
    return {**longest, **{key: sum(f[key] for f in findings) for key in COUNTS},
            "lines": sorted({line for f in findings for line in f["lines"]})}


def judge(case, part, findings, timed=True):
    """Texts of what is wrong with the findings of one part; none where all is as expected. Without
    `timed` nothing that rests on the length of calls is judged: for a simulated driver, whose threads
    share the machine with others."""
    label = f"{case.id} {part}"
    mine = [f for f in findings if f["label"] == label]
    wrong, claimed = [], set()
    for one in case.expected[part]:
        least, most = bounds(one.get("sites", [1, None] if case.path.suffix == ".py" else 1))
        hits = [i for i, f in enumerate(mine) if i not in claimed and is_meant(one, case, f)]
        # Several findings with one description: those that fit are meant.
        hits.sort(key=lambda i: len(wrong_in(one, case, mine[i], timed)))
        hits = hits[:most]
        optional = one.get("optional") or (not timed and one.get("verdict") in BY_TIME)
        if len(hits) < least and not (optional and not hits):
            wrong.append(f"{len(hits)} findings for {json.dumps(one)}")
        if not hits:
            continue
        claimed.update(hits)
        together = added([mine[i] for i in hits])
        wrong += [f"{calls_of(together)}: {text}" for text in wrong_in(one, case, together, timed)]
    kinds = [one["kind"] for expectations in case.expected.values() for one in expectations]
    for number, finding in enumerate(mine):
        if number not in claimed and not is_quiet(finding, kinds, timed):
            wrong.append(f"unexpected: {text_of(finding)}")
    return wrong


def wrong_in_captures(one, captures):
    """What of the captures that an expectation is about differs from it, as texts."""
    wrong = []
    times = sum(c["count"] for c in captures)
    if times != one.get("times", 2):
        wrong.append(f"broken {times} times, not {one.get('times', 2)}")
    for capture in captures:
        begin, breaker = capture["begin"], capture["broken_by"]
        if "thread" in one and (begin["tid"] == breaker["tid"] or 0 in (begin["tid"], breaker["tid"])):
            wrong.append(f"begun by thread {begin['tid']}, broken by {breaker['tid']}")
        if capture["possible"] or capture["refused"] or capture["result"] != UNSUPPORTED:
            wrong.append(f"possible {capture['possible']}, refused {capture['refused']}, "
                         f"result {capture['result']}")
    return wrong


def judge_captures(case, captures):
    """The same for the captures that calls in the case's file broke."""
    mine = [c for c in captures if line_in(c["broken_by"], case.path) is not None]
    wrong, claimed = [], set()
    for one in case.captures:
        hits = [i for i, c in enumerate(mine) if i not in claimed
                and re.fullmatch(one.get("call", ".*"), base(c["broken_by"]["call"]))
                and re.fullmatch(one.get("thread", ".*"), c["broken_by"]["thread"])
                and re.fullmatch(one.get("mode", ".*"), c["mode"])
                and ("at" not in one
                     or line_in(c["broken_by"], case.path) in case.markers[one["at"]])
                and ("begun_at" not in one
                     or line_in(c["begin"], case.path) in case.markers[one["begun_at"]])]
        if not hits:
            wrong.append(f"no broken capture for {json.dumps(one)}")
            continue
        claimed.update(hits)
        wrong += wrong_in_captures(one, [mine[i] for i in hits])
    for number, capture in enumerate(mine):
        if number not in claimed:
            wrong.append(f"unexpected: capture of {capture['begin']['where']} broken by "
                         f"{capture['broken_by']['call']} at {capture['broken_by']['where']}")
    return wrong
