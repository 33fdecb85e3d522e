# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python.stacks: what hostwait says of Python stacks against the interpreter's own frames, for every
interpreter at hand (interpreters.py): in the middle of a program, while one starts, while it ends.
Status 77 where there is none."""

import json
import pathlib
import re
import sys
import tempfile

from interpreters import HERE, interpreters, stacks_by_label, under_hostwait

KEPT = 32  # pystacks' default
LEAST = 420  # labels of stacks_program.py
ENDS = 4


def check_stacks(python):
    with tempfile.TemporaryDirectory() as folder:
        output, report = under_hostwait([python.path, "-B", HERE / "stacks_program.py"], folder)
    said, found = json.loads(output), stacks_by_label(report)
    expected = said["stacks"]
    wrong = {label: (found.get(label), stack[:KEPT]) for label, stack in expected.items()
             if found.get(label) != stack[:KEPT]}
    for label, (got, wanted) in wrong.items():
        print(f"{python.name} {label}:\n  hostwait {got}\n  python   {wanted}")
    # The line of the program alone: what ctypes and libffi add between it and the driver is folded.
    odd = [finding["where"] for finding in report["findings"] if finding["label"]
           and not re.match(r"stacks_program\.py:\d+ wait  label ", finding["where"])]
    if odd:
        print(f"{python.name}: {odd[:3]}")
        wrong["where"] = odd
    untested = [note for note in report["notes"] if note.startswith("CPython")]
    if python.minor < 14 and untested:
        print(f"{python.name}: {untested}")
        wrong["note"] = untested
    print(f"{python.name}: {len(expected) - len(wrong)} of {len(expected)} stacks agree; "
          f"{said['addresses_used_again']} code objects took another's place")
    return not wrong and len(expected) >= LEAST and said["addresses_used_again"] > 100


def check_options(python):
    """pystacks=0 leaves Python frames out, stacks=0 the native ones; limits are kept."""
    good = True
    for options, python_frames, native_frames in (
            (("--pystacks", "0"), 0, None), (("--stacks", "0"), None, 0),
            (("--pystacks", "5", "--stacks", "3"), 5, 3)):
        with tempfile.TemporaryDirectory() as folder:
            _, report = under_hostwait([python.path, "-B", HERE / "stacks_program.py"], folder,
                                       options)
        deepest = {key: max(len([f for f in finding[key] if not f.get("inlined")])
                            for finding in report["findings"]) for key in ("python", "native")}
        for key, limit in (("python", python_frames), ("native", native_frames)):
            # Native frames of the driver's layer are cut from the top of what was kept.
            fits = deepest[key] > 5 if limit is None else deepest[key] <= limit
            if key == "python" and limit:
                fits = deepest[key] == limit
            if not fits:
                good = False
                print(f"{python.name} {' '.join(options)}: {deepest[key]} {key} frames")
    return good


def check_start(python):
    """A wait before the main module: in sitecustomize, which the interpreter imports by itself."""
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder, "site")
        site.mkdir()
        text = (HERE / "ends_program.py").read_text(encoding="utf-8")
        text = text.replace('os.path.dirname(__file__), "..", "..", "python"',
                            repr(str(HERE.parent.parent / "python")))
        text = text[:text.index("class Last")] + 'wait("sitecustomize")\n'
        site.joinpath("sitecustomize.py").write_text(text, encoding="utf-8")
        _, report = under_hostwait([python.path, "-B", "-c", "pass"], folder,
                                   env={"PYTHONPATH": str(site)})
    stack = stacks_by_label(report).get("sitecustomize", [])
    lines = text.splitlines()
    good = (len(stack) > 2 and [frame[1] for frame in stack[:2]] == ["wait", "<module>"]
            and all(pathlib.Path(frame[0]).name == "sitecustomize.py" for frame in stack[:2])
            and [lines[frame[2] - 1].strip() for frame in stack[:2]]
            == ["cuda.cuCtxSetCurrent(context), cuda.cuCtxSynchronize()", 'wait("sitecustomize")'])
    print(f"{python.name}: at the start {'right' if good else stack}")
    return good


def check_end(python):
    good = 0
    for _ in range(ENDS):
        with tempfile.TemporaryDirectory() as folder:
            output, report = under_hostwait([python.path, "-B", HERE / "ends_program.py"], folder)
        found = stacks_by_label(report)
        torn_down = [finding for finding in report["findings"] if not finding["label"]]
        right = (found.get("atexit") == json.loads(output) and "daemon" in found
                 and sum(finding["calls"] for finding in torn_down) >= 1)
        good += right
        if not right:
            print(f"{python.name}: at the end {found.get('atexit')} instead of {output}, "
                  f"{len(torn_down)} findings of destructors")
    print(f"{python.name}: {good} of {ENDS} ends are right")
    return good == ENDS


def main():
    found = interpreters()
    if not found:
        return 77
    results = [check(python) for python in found
               for check in (check_stacks, check_start, check_end)]
    return 0 if all(results + [check_options(found[0])]) else 1


sys.exit(main())
