#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
"""Puts the tested examples of tests/gpu/advice and the sentences of tools/report/advice.def into
docs/advice.md; with --check, fails where they differ, or where one of both sides lacks a part.

The page holds `<!-- advice: LANGUAGE NAME before|after -->` above each block of code and
`<!-- advice: NAME -->` above each sentence; what stands between is the page's own."""

import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "advice.md"
SENTENCES = ROOT / "tools" / "report" / "advice.def"
FOLDER = ROOT / "tests" / "gpu" / "advice"
LANGUAGES = {"cpp": ("advice.cpp", "cpp"), "torch": ("advice_torch.py", "python"),
             "cupy": ("advice_cupy.py", "python")}
BEGIN = re.compile(r"^\s*(?://|#) advice: (\S+) (before|after)$")
END = re.compile(r"^\s*(?://|#) advice: end$")
CODE = re.compile(r"(<!-- advice: (\w+) (\S+) (before|after) -->\n)```\w*\n.*?```\n", re.DOTALL)
SENTENCE = re.compile(r"(<!-- advice: (\w+) -->\n)[^\n]*\n")


def examples():
    """{(language, name, which): code}"""
    made = {}
    for language, (file, _) in LANGUAGES.items():
        key, lines = None, []
        for line in (FOLDER / file).read_text(encoding="utf-8").splitlines():
            if begin := BEGIN.match(line):
                key, lines = (language, *begin.groups()), []
            elif END.match(line):
                made[key] = textwrap.dedent("\n".join(lines)) + "\n"
                key = None
            elif key:
                lines.append(line)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    wanted = parser.parse_args()
    code = examples()
    sentences = dict(re.findall(r'^HW_ADVICE\((\w+), "([^"]*)"\)$',
                                SENTENCES.read_text(encoding="utf-8"), re.MULTILINE))
    page = PAGE.read_text(encoding="utf-8")
    wrong = []

    def block(match):
        key = match.group(2, 3, 4)
        if key not in code:
            wrong.append(f"no example {' '.join(key)} in tests/gpu/advice")
            return match.group()
        return f"{match.group(1)}```{LANGUAGES[key[0]][1]}\n{code[key]}```\n"

    def sentence(match):
        text = sentences.get(match.group(2))
        if text is None:
            wrong.append(f"no sentence {match.group(2)} in {SENTENCES.name}")
            return match.group()
        return f"{match.group(1)}**{text[0].upper()}{text[1:]}.**\n"

    made = SENTENCE.sub(sentence, CODE.sub(block, page))
    shown = {match.group(2, 3, 4) for match in CODE.finditer(page)}
    wrong += [f"the example {' '.join(key)} is not shown" for key in sorted(set(code) - shown)]
    said = {match.group(2) for match in SENTENCE.finditer(page)}
    wrong += [f"the sentence {name} is not shown" for name in sorted(set(sentences) - said)]
    wrong += [f"no section ## {name}" for name in sentences
              if not re.search(rf"^## {name}$", page, re.MULTILINE)]
    for line in wrong:
        print(f"docs/advice.md: {line}")
    if made != page and wanted.check:
        print("docs/advice.md is not up to date: run scripts/advice_doc.py")
    if made != page and not wanted.check and not wrong:
        PAGE.write_text(made, encoding="utf-8")
    return 1 if wrong or (wanted.check and made != page) else 0


if __name__ == "__main__":
    sys.exit(main())
