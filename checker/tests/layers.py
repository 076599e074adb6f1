#!/usr/bin/env python3
"""The folders of checker/src form layers. usage: layers.py [SOURCE_FOLDER]

A file includes files of its own folder and of folders in lower layers. It includes nothing from its own layer or a
higher one, so no two folders can include each other, not even through a third one. A new folder needs a place in
LAYERS."""

import re
import sys
from pathlib import Path

LAYERS = (  # from the lowest to the highest
    "support",
    "terminal course site junit",
    "process",
    "evidence plan lab",
    "box data jobs",
    "judge doctor endure golden",
    "state",
    "report",
    "monitor grade watch",
    "bench",
    "verbs",
    "main.cpp")
OUTSIDE = ("console", "instrumentation")  # libraries below the checker
LEVEL = {folder: level for level, layer in enumerate(LAYERS) for folder in layer.split()}
INCLUDE = re.compile(r'^ *# *include *"([^"]+)"', re.M)


def fault_of(folder: str, included: str, has_file: bool) -> str:
    """What is wrong with this #include in a file of `folder`; empty if nothing is."""
    other = included.split("/")[0]
    if folder == other or "/" not in included or other in OUTSIDE:
        return ""
    if not has_file:
        return "there is no such file"
    for name in (folder, other):
        if name not in LEVEL:
            return f"{name} has no place in LAYERS of layers.py"
    if LEVEL[other] < LEVEL[folder]:
        return ""
    where = "of the same layer" if LEVEL[other] == LEVEL[folder] else "of a higher layer"
    return f"{folder} includes {other}, which is {where}"


def main(source: Path) -> int:
    faults = count = 0
    for file in sorted([*source.rglob("*.hpp"), *source.rglob("*.cpp")]):
        text = file.read_text(encoding="utf-8")
        for found in INCLUDE.finditer(text):
            count += 1
            included = found[1]
            if fault := fault_of(file.relative_to(source).parts[0], included, (source / included).is_file()):
                line = text.count("\n", 0, found.start()) + 1
                print(f'{file}:{line}: #include "{included}": {fault}')
                faults += 1
    print(f"{count} includes, {faults} faults")
    return 0 if count and not faults else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "src")))
