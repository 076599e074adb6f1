"""The ladder as slides need it: what a TODO says, and its code before and after.

checker/src/ladder/source.cpp is the one that renders steps; this reads the same sources, only as far
as one TODO's places go. Anything that is not there raises LadderError, which fails the build."""

import re
import textwrap
from pathlib import Path

import yaml

LADDER = Path(__file__).resolve().parents[2] / "checker" / "ladder"
MARK = re.compile(r"(?<=\S)  (//|#)@[a-z0-9_.]+$")  # the name of a line, for the catalogue's edits


class LadderError(Exception):
    pass


def numbers():
    """Every TODO's number, in order."""
    return sorted(int(file.stem) for file in (LADDER / "todos").glob("[0-9][0-9].yaml"))


def todo(number):
    """The entries of todos/NN.yaml."""
    file = LADDER / "todos" / f"{number:02}.yaml"
    if not file.exists():
        raise LadderError(f"the ladder has no TODO {number}")
    return yaml.safe_load(file.read_text())


def paragraphs(text):
    """Paragraphs of a ladder text: pairs (is it code?, the text)."""
    return [(block.startswith("  "), textwrap.dedent(block).rstrip())
            for block in re.split(r"\n\s*\n", text.rstrip())]


def file_of(number):
    """The file in which a student does this TODO, and the language it is in."""
    source, _ = _source_of(number)
    step = todo(number)["step"]
    if source.suffix == ".sbatch":
        return f"sbatch/{step}.sbatch", "bash"
    return f"steps/{step}/train.cpp", "cpp"


def places(number):
    """(before, after) for each place of a TODO: the lines as given, and done. Either may be empty."""
    source, lines = _source_of(number)
    features = set(todo(number)["features"])
    given = _given_features(number)
    found = []
    for index, line in enumerate(lines):
        if re.fullmatch(rf"\s*(//|#)@todo {number}", line):
            block = _block_after(lines, index + 1)
            found.append((_chosen(block, given), _chosen(block, given | features)))
    if not found:
        raise LadderError(f"TODO {number} has no place in {source.name}")
    return found


def _source_of(number):
    for name in ("trainer.cpp", "job.sbatch"):
        lines = [MARK.sub("", line) for line in (LADDER / name).read_text().splitlines()]
        if any(re.fullmatch(rf"\s*(//|#)@todo {number}", line) for line in lines):
            return LADDER / name, lines
    raise LadderError(f"TODO {number} has no place in trainer.cpp or job.sbatch")


def _given_features(number):
    """What is on before this TODO is done: earlier TODOs, and what the step brings ready-made."""
    steps = yaml.safe_load((LADDER / "ladder.yaml").read_text())["steps"]
    own = next(i for i, step in enumerate(steps) if step["name"] == todo(number)["step"])
    given = {feature for step in steps[:own + 1] for feature in step.get("given", [])}
    mine = set(todo(number)["features"])
    for other in numbers():
        if other < number:
            given |= set(todo(other)["features"])
    return given - mine


def _block_after(lines, begin):
    """The #if block that follows a TODO's place, further places in between left out."""
    while re.fullmatch(r"\s*(//|#)@todo \d+", lines[begin]):
        begin += 1
    if not lines[begin].startswith("#if "):
        raise LadderError(f"no #if after a TODO's place: {lines[begin]}")
    depth = 0
    for end in range(begin, len(lines)):
        depth += lines[end].startswith("#if ") - (lines[end] == "#endif")
        if depth == 0:
            return lines[begin:end + 1]
    raise LadderError("an #if without #endif")


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
