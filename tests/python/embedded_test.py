# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""python.embedded: interpreters inside a C program, linked as shared and as static library, with
the headers of each interpreter at hand; status 77 where there are none, or none whose library can be
linked here even to a program that only starts it."""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

from interpreters import HERE, interpreters, stacks_by_label, under_hostwait

SOURCE = str(HERE / "embedded.c")
ASK = """
import json, os, sysconfig
v = sysconfig.get_config_var
print(json.dumps(dict(include=sysconfig.get_path('include'), folder=v('LIBDIR'), config=v('LIBPL'),
    shared=v('LDLIBRARY'), static=v('LIBRARY'), more=f"{v('LIBS')} {v('SYSLIBS')}")))
"""


START = "#include <Python.h>\nint main(void) { Py_Initialize(); return 0; }\n"


def commands(python, program, include):
    """{kind of linking: compiler's arguments} for the libraries that are there, with headers."""
    asked = json.loads(subprocess.run([python.path, "-c", ASK], text=True, capture_output=True,
                                      check=True).stdout)
    base = ["cc", "-g", "-O1", f"-I{asked['include']}", *include, SOURCE, "-o",
            str(program), "-pthread", "-rdynamic"]
    made = {}
    if not pathlib.Path(asked["include"], "Python.h").exists():
        print(f"{python.version}: no headers")
        return made
    shared = pathlib.Path(asked["folder"], asked["shared"])
    if shared.suffix != ".a" and shared.exists():
        made["shared"] = [*base, str(shared), f"-Wl,-rpath,{asked['folder']}", "-ldl"]
    static = pathlib.Path(asked["config"], asked["static"])
    if static.exists():
        made["static"] = [*base, "-Wl,--whole-archive", str(static), "-Wl,--no-whole-archive",
                          *shlex.split(asked["more"]), "-ldl", "-lm", "-lutil"]
    return made


def compiled(command):
    return subprocess.run(command, text=True, capture_output=True, check=False)


def can_be_linked(command, folder):
    start = folder / "start.c"
    start.write_text(START)
    return compiled([str(start) if part == SOURCE else part for part in command]).returncode == 0


def expected(minor):
    text = "<string>"
    known = {
        "before": [], "no frame": [], "unknown thread": [], "after": [], "after all": [],
        "thread that Python has forgotten": [],
        "holding the GIL": [[text, "f", 3], [text, "<module>", 5]],
        "without it": [[text, "f", 4], [text, "<module>", 5]],
        "known thread": [[text, "<module>", 3]],
        "main interpreter again": [[text, "<module>", 2]],
        "second life": [[text, "<module>", 4]],
        # docs/limits.md: 3.11 knows a thread by its state in the main interpreter only.
        "sub-interpreter": [], "sub-interpreter without GIL": [],
    }
    if minor >= 12:
        known["sub-interpreter"] = [[text, "inside", 3], [text, "<module>", 5]]
        known["sub-interpreter without GIL"] = [[text, "inside", 4], [text, "<module>", 5]]
        known["own GIL"] = [[text, "inside", 3], [text, "<module>", 4]]
    return known


def main():
    include = [f"-I{folder}" for folder in sys.argv[1:]]
    tried = good = 0
    for python in interpreters():
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "embedded")
            for kind, command in commands(python, program, include).items():
                built = compiled(command)
                if built.returncode != 0 and not can_be_linked(command, pathlib.Path(folder)):
                    print(f"{python.version} {kind}: skipped, does not link: "
                          f"{built.stderr.strip().splitlines()[-1:]}")
                    continue
                tried += 1
                if built.returncode != 0:
                    print(f"{python.version} {kind}: {built.stderr}")
                    continue
                records = pathlib.Path(folder, kind)
                records.mkdir()
                _, report = under_hostwait([program], records)
                found, wanted = stacks_by_label(report), expected(python.minor)
                wrong = {label: found.get(label) for label in wanted
                         if found.get(label) != wanted[label]}
                good += not wrong
                print(f"{python.version} {kind}: {len(wanted) - len(wrong)} of {len(wanted)} "
                      f"stacks are right{f'; wrong: {wrong}' if wrong else ''}")
    if tried == 0:
        print("skipped: no interpreter with headers and a library")
        return 77
    return 0 if good == tried else 1


sys.exit(main())
