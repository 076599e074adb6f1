#!/usr/bin/env python3
"""Holds sources to the words that style.py bans: what they say and what their comments say. usage: style_sources.py

It reads the comments and string literals of C++ sources that are not tests, and of the slides' figures in Python. It
looks for the phrases of style.BANNED.
Each public header must begin with a comment that says what it is for."""

import re
import sys
import tokenize
from pathlib import Path

import style

FOLDERS = ("checker/replay", "checker/src", "distributed_utils/include", "distributed_utils/src", "tasks")
PUBLIC = ("distributed_utils/include", "tasks/include")
RULES = "checker/chapters/*/rules"
FIGURES = "slides/figures"
SUFFIXES = (".cpp", ".hpp", ".cu", ".cuh")
STRING = r'"(?:[^"\\\n]|\\.)*"'
TOKEN = re.compile(rf"""(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*)|R"(\w*)\(.*?\)\2"|'(?:[^'\\\n]|\\.)'"""
                   rf"|\#include[^\n]*|(?P<strings>{STRING}(?:\s*{STRING})*)", re.S)


def sources(root: Path) -> list[Path]:
    folders = [*(root / folder for folder in FOLDERS), *sorted(root.glob(RULES))]
    files = (file for folder in folders for file in sorted(folder.rglob("*")) if file.suffix in SUFFIXES)
    return [file for file in files if "tests" not in file.relative_to(root).parts]


def texts(source: str):
    """The line and the words of each comment, and of strings that the compiler joins."""
    for token in TOKEN.finditer(source):
        line = source.count("\n", 0, token.start()) + 1
        if token["comment"]:
            yield line, re.sub(r"\s*\n[ \t]*//[/<]*\s*", " ", token["comment"])
        elif token["strings"]:
            yield line, "".join(part[1:-1] for part in re.findall(STRING, token["strings"]))


def texts_of_python(file: Path):
    """The same of a Python file. Since Python 3.12 an f-string consists of tokens of its own."""
    kinds = tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    with open(file, "rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type in kinds:
                yield token.start[0], re.sub(r"\s+", " ", token.string)


def look(root: Path) -> list[str]:
    problems = []
    for file in sources(root) + sorted((root / FIGURES).glob("*.py")):
        name, source = file.relative_to(root), file.read_text()
        for line, words in texts_of_python(file) if file.suffix == ".py" else texts(source):
            problems += [f'{name}:{line}: "{match[0]}", {advice} — {words[:160]}' for pattern, advice in style.BANNED.items()
                         if (match := re.search(pattern, words, re.I))]
        if file.suffix == ".hpp" and str(name).startswith(PUBLIC) and not re.match(r"#pragma once\n/// \S", source):
            problems.append(f"{name}:2: a comment must say here what the header is for")
    return problems


def main() -> int:
    problems = look(style.ROOT)
    print(*(problems or ["The sources are plain."]), sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
