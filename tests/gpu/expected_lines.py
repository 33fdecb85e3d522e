# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Which lines of a source should be named in findings, read from comments in it.

    # expect: KIND[|KIND…][; in FUNCTION][; range PATH][; label TEXT][; thread NAME][; id TAG]
    // via: TAG        a line that called the function in which TAG is expected
    # setup            findings that name this line prove nothing

Every `expect` must have a finding whose line it is, and whose kind, function, range, label and
thread are those; every `via` a finding whose native stack holds both lines. A wait that names a
line of the source without a comment is wrong; memory and set-up calls (free, module, …) may be made
behind any line, at the first use of a kernel for example."""

import ast
import dataclasses
import pathlib
import re

COMMENT = re.compile(r"(?:#|//) (expect|via): (.+)$")
WAITS = {"device_sync", "stream_sync", "event_sync", "copy", "async_copy", "memset"}
SETUP = re.compile(r"(?:#|//) setup\b")


@dataclasses.dataclass
class Expectation:
    line: int
    kinds: list
    keys: dict
    function: str = ""


class Source:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.expected, self.via, self.setup = [], [], set()
        text = self.path.read_text(encoding="utf-8")
        functions = python_functions(text) if self.path.suffix == ".py" else {}
        for number, line in enumerate(text.splitlines(), 1):
            if SETUP.search(line):
                self.setup.add(number)
            match = COMMENT.search(line)
            if match is None:
                continue
            if match[1] == "via":
                self.via.append((number, match[2].strip()))
                continue
            kinds, *rest = [part.strip() for part in match[2].split(";")]
            keys = dict(part.partition(" ")[::2] for part in rest)
            self.expected.append(Expectation(number, kinds.split("|"), keys,
                                             keys.get("in") or functions.get(number, "")))


def python_functions(text):
    """{line: qualified name of the function that it stands in, as code objects bear it}."""
    names = {}

    def walk(node, prefix, inside):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                walk(child, prefix + child.name + ".<locals>.", prefix + child.name)
            elif isinstance(child, ast.ClassDef):
                walk(child, prefix + child.name + ".", inside)
            else:
                if hasattr(child, "lineno"):
                    for line in range(child.lineno, child.end_lineno + 1):
                        names[line] = inside
                walk(child, prefix, inside)

    walk(ast.parse(text), "", "<module>")
    return names


def named_frame(finding):
    """(file, line, function) that stands for a finding: the innermost of the user's own frames, in
    Python where there is one; None where there is none."""
    for frame in finding["python"]:
        if not frame["library"]:
            return frame["file"], frame["line"], frame["function"]
    if finding["python"]:
        return None
    for frame in finding["native"]:
        if frame["owner"] == "user":
            return frame["file"], frame["line"], frame["function"]
    return None


def same_function(got, wanted):
    # torch.compile runs the rest of a function after a graph break under a name of its own.
    plain = wanted.rsplit(".", 1)[-1]
    return (not wanted or got == wanted or got.endswith("::" + wanted)
            or f"torch_dynamo_resume_in_{plain}_at_" in got)


def fits(finding, expectation, source):
    """Why a finding on the expected line is not the expected one; "" where it is."""
    keys = expectation.keys
    frame = named_frame(finding)
    if finding["kind"] not in expectation.kinds:
        return f"kind {finding['kind']}"
    if not same_function(frame[2], expectation.function):
        return f"function {frame[2]} instead of {expectation.function}"
    if f"{source.path.name}:{expectation.line} " not in finding["where"]:
        return f"the text says {finding['where']}"
    for key in ("range", "label"):
        if key in keys and finding[key] != keys[key]:
            return f"{key} {finding[key]!r} instead of {keys[key]!r}"
    if "thread" in keys and not any(re.search(keys["thread"], name)
                                    for name in finding["thread_names"]):
        return f"threads {finding['thread_names']}"
    return ""


def of_source(finding, source):
    """The line of the source that a finding names, None where it names none."""
    frame = named_frame(finding)
    if frame is None or pathlib.PurePath(frame[0]).name != source.path.name:
        return None
    return frame[1]


def judge(path, findings):
    """[(name, good, detail)], one per comment and one for lines that should not be named."""
    source = Source(path)
    lines = [(of_source(finding, source), finding) for finding in findings]
    results, tags = [], {}
    for expectation in source.expected:
        tags[expectation.keys.get("id")] = expectation
        here = [finding for line, finding in lines if line == expectation.line]
        reasons = [fits(finding, expectation, source) for finding in here]
        good = "" in reasons
        detail = (here[reasons.index("")]["where"] if good
                  else "; ".join(reasons) or f"no finding names it (in {expectation.function})")
        results.append((f"{source.path.name}:{expectation.line}", good, detail))
    for number, tag in source.via:
        if tag not in tags:
            raise ValueError(f"{path}:{number}: no expectation has the id {tag}")
        good = any(line == tags[tag].line
                   and any(frame["line"] == number
                           and pathlib.PurePath(frame["file"]).name == source.path.name
                           for frame in finding["native"])
                   for line, finding in lines)
        results.append((f"{source.path.name}:{number} calls line {tags[tag].line}", good,
                        "" if good else "no native stack holds both lines"))
    known = {expectation.line for expectation in source.expected} | source.setup
    wrong = sorted({f"line {line}: {finding['call']}, {finding['kind']}, {finding['where']}"
                    for line, finding in lines
                    if line is not None and line not in known and finding["kind"] in WAITS})
    results.append((f"{source.path.name}: no other line", not wrong, "; ".join(wrong)))
    if not source.expected:
        results.append((f"{source.path.name}: expectations", False, "the source has none"))
    return results
