#!/usr/bin/env python3
"""Documents that people finish reading: README.md is short, every link to a file finds it, and pictures
load fast. usage: documents_test.py [PROJECT]"""

import re
import sys
from pathlib import Path

MOST_LINES, MOST_BYTES = 150, 150_000
FOLDERS = ("checker", "distributed_utils", "sbatch", "slides", "steps", "tasks")
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")


def documents(root):
    return [*root.glob("*.md"), *(file for folder in FOLDERS for file in sorted((root / folder).rglob("*.md")))]


def broken_links(file):
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.M | re.S)
    for target in LINK.findall(text):
        place = target.partition("#")[0]
        if "://" not in target and place and not (file.parent / place).exists():
            yield f"{target}: there is no such file"


def look(root):
    lines = len((root / "README.md").read_text().splitlines())
    problems = [f"README.md: {lines} lines, {MOST_LINES} is the most"] * (lines > MOST_LINES)
    shown = set()
    for file in documents(root):
        problems += [f"{file.relative_to(root)}: {problem}" for problem in broken_links(file)]
        shown |= {(file.parent / target).resolve() for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", file.read_text())}
    for picture in sorted((root / "slides/pictures").glob("*")):
        size = picture.stat().st_size
        problems += [f"{picture.name}: {size} bytes, {MOST_BYTES} is the most"] * (size > MOST_BYTES)
        problems += [f"{picture.name}: no document shows it"] * (picture.resolve() not in shown)
    return problems


if __name__ == "__main__":
    found = look(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve())
    print(*(found or ["The documents are short and whole."]), sep="\n")
    sys.exit(bool(found))
