"""The course as slides need it: what a TODO says, and its code before and after.

checker/src/course/source.cpp is the one that renders steps; this reads the same sources, only as far
as one TODO's places go. Anything that is not there raises CourseError, which fails the build."""

import re
import textwrap
from pathlib import Path

import yaml

CHAPTERS = Path(__file__).resolve().parents[2] / "checker" / "chapters"
MARK = re.compile(r"(?<=\S)  (//|#)@[a-z0-9_.]+$")  # the name of a line, for the catalogue's edits


class CourseError(Exception):
    pass


def numbers():
    """Every TODO's number, in order; those of chapters for tests have no slides."""
    return sorted(int(file.stem) for name in _chapters() for file in (CHAPTERS / name / "todos").glob("[0-9][0-9].yaml"))


def todo(number):
    """The entries of todos/NN.yaml."""
    return yaml.safe_load((_chapter_of(number) / "todos" / f"{number:02}.yaml").read_text())


def steps():
    """Every chapter's steps, in the order of the course, each with its parent's name or None. Exercises
    beside the steps are none of them."""
    found = []
    for name in _chapters():
        chapter = yaml.safe_load((CHAPTERS / name / "chapter.yaml").read_text())
        for step in chapter["steps"] if chapter.get("kind") != "plain" else []:
            parent = step.get("parent", found[-1]["name"] if found else None)
            found.append(step | {"parent": None if parent == "none" else parent})
    return found


def paragraphs(text):
    """Paragraphs of a course text: pairs (is it code?, the text)."""
    return [(block.startswith("  "), textwrap.dedent(block).rstrip())
            for block in re.split(r"\n\s*\n", text.rstrip())]


def file_of(number):
    """The file in which a student does this TODO, and the language it is in."""
    source, _ = _source_of(number)
    step = todo(number)["step"]
    if source.suffix == ".sbatch":
        return f"sbatch/{step}.sbatch", "bash"
    return f"steps/{step}/{source.name}", "cpp"


def places(number, solved=False):
    """(before, after) for each place of a TODO: the lines as given, and done. Either may be empty. solved: with what
    the step's later TODOs make of them."""
    source, lines = _source_of(number)
    features = set(todo(number)["features"])
    if solved:
        features |= {feature for other in _step_of(number)["todos"] for feature in todo(other)["features"]}
    given = _given_features(number)
    found = []
    for index, line in enumerate(lines):
        if re.fullmatch(rf"\s*(//|#)@todo {number}", line):
            block = _block_after(lines, index + 1)
            found.append((_chosen(block, given), _chosen(block, given | features)))
    if not found:
        raise CourseError(f"TODO {number} has no place in {source.name}")
    return found


def _chapters():
    """Those of the course, in its order."""
    return yaml.safe_load((CHAPTERS / "order.yaml").read_text())["chapters"]


def _chapter_of(number):
    """The folder of the chapter that a TODO belongs to."""
    for folder in CHAPTERS.iterdir():
        if (folder / "todos" / f"{number:02}.yaml").exists():
            return folder
    raise CourseError(f"the course has no TODO {number}")


def _step_of(number):
    return next(step for step in steps() if step["name"] == todo(number)["step"])


def _source_of(number):
    folder = _chapter_of(number)
    for name in yaml.safe_load((folder / "chapter.yaml").read_text())["files"]:
        lines = [MARK.sub("", line) for line in (folder / name).read_text().splitlines()]
        if any(re.fullmatch(rf"\s*(//|#)@todo {number}", line) for line in lines):
            return folder / name, lines
    raise CourseError(f"TODO {number} has no place in any file of its chapter")


def _given_features(number):
    """What is on before this TODO is done: the step's earlier TODOs, what the step brings
    ready-made, and all of the steps that it goes back to."""
    by_name = {step["name"]: step for step in steps()}
    step = _step_of(number)
    given = {feature for other in step["todos"] if other < number for feature in todo(other)["features"]}
    given |= set(step.get("given", []))
    while step["parent"]:
        step = by_name[step["parent"]]
        given |= set(step.get("given", []))
        given |= {feature for other in step["todos"] for feature in todo(other)["features"]}
    return given - set(todo(number)["features"])


def _block_after(lines, begin):
    """The #if block that follows a TODO's place, further places in between left out."""
    while re.fullmatch(r"\s*(//|#)@todo \d+", lines[begin]):
        begin += 1
    if not lines[begin].startswith("#if "):
        raise CourseError(f"no #if after a TODO's place: {lines[begin]}")
    depth = 0
    for end in range(begin, len(lines)):
        depth += lines[end].startswith("#if ") - (lines[end] == "#endif")
        if depth == 0:
            return lines[begin:end + 1]
    raise CourseError("an #if without #endif")


def _chosen(lines, features):
    """The lines that remain with these features on, as the C preprocessor chooses them."""
    stack, kept = [], []
    for line in lines:
        condition = re.fullmatch(r"#if (!?)(\w+)", line)
        if condition:
            stack.append((condition[2] in features) != bool(condition[1]))
        elif line == "#else":
            stack[-1] = not stack[-1]
        elif line == "#endif":
            stack.pop()
        elif all(stack):
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return textwrap.dedent("\n".join(kept))
