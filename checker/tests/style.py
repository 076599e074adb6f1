#!/usr/bin/env python3
"""Holds the texts that people read to plain English. usage: style.py [--update-old] [PROGRAM...]

It reads README files and the like, decks, texts in YAML files (all texts of MESSAGES), `./workbook --help` and the
--help of each PROGRAM (of the checker: of every verb), without code. Inline code and formulas count as one word. A
heading, a list item, a table cell and the description of an option are sentences of their own. The rules:
  1. None of the words in BANNED below.
  2. No sentence over 30 words.
  3. At most 15 % of a file's sentences have a form of "be" plus a participle ("is kept", "are not written"). Only
     sentences of four words or more count, and files with ten of them or more. The help of all verbs is one file.
     Compile errors are exempt: "declared twice" is what a compiler says.

style.old lists the sentences older than these rules that break rule 1 or 2, as "FILE HASH", and the share that an
old file may still have, as "FILE N%". They pass until somebody changes them. An entry that no longer applies is an
error; --update-old removes it and never adds one. When you rename a file, rename it in style.old too.

A marker makes an exception: in Markdown <!-- style: why --> in the paragraph or above it, in YAML # style: why on
the key's line or above it. It excuses the paragraph's first sentence that breaks rule 1 or 2. Ten are the most. Help
texts cannot have any."""

import argparse
import hashlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
FILES = "*.md */README.md slides/**/*.md tasks/**/*.md checker/**/*.md checker/**/*.yaml".split()
TEXT_KEYS = "ask|title|done|text|hint|shape|explanation|belief|because|here_too|intro"
MESSAGES = {"findings.yaml": "(?!says)", "quiz.yaml": "ask|why", "compile_errors.yaml": "what|fix"}  # their keys
BANNED = {  # a pattern, and what to do instead
    r"\bMend:": 'write "Fix:" or "Try:"',
    r"\bof which\b": "make it two sentences",
    r"\bfor want of\b": 'write "without"',
    r"\bas given\b": 'write "unchanged"',
    r"\bc[ao]mes? to (its|their|an) end\b": 'write "ends"',
    r"\banew\b": 'write "again"',
    r"\b(is|are) no \w+ any ?more\b": 'write "is no longer"',
    r"\bbe it (an?|the|in|on|by|for|from|with)\b": 'write "whether"',
    r"\bmend(s|ed|ing)?\b": 'write "fix"', r"\bstand(s|ing)? still\b": 'write "has stalled"',
    r"(?<![Tt]here )\b(is|are) no (?!longer\b)\w+": 'write "is not a"', r"\bequally many\b": 'write "the same number of"',
    r"\bdo(es)? without\b": 'write "needs no" or "does not use"', r"\bin (the )?place of\b": 'write "instead of"',
    r"\bin vain\b": 'write "without success"', r"\bfor ever\b": 'write "forever"',
    r"\bbelongs? into\b": 'write "belongs in"', r"\ball else\b": 'write "everything else"',
    r"\bis the (least|most)\b(?! \w)": 'write "minimum" or "maximum"'}
MOST_WORDS, MOST_PASSIVE, FEWEST_SENTENCES, MOST_EXCEPTIONS = 30, 15, 10, 10
BE = "is|are|was|were|be|been|being|isn't|aren't|wasn't|weren't"
NEVER_BETWEEN = "a|an|and|as|at|but|by|each|for|from|in|its|no|of|on|one|or|our|that|the|their|this|to|with|your"
PARTICIPLES = r"\w+ed|begun|bought|broken|brought|built|caught|chosen|cut|dealt|done|drawn|driven|forgotten|found|" \
    "frozen|given|held|hidden|hit|hurt|kept|known|laid|led|left|lost|made|meant|overwritten|paid|put|read|rebuilt|" \
    "reset|rewritten|run|seen|sent|set|shown|shut|spent|split|stuck|taken|taught|thrown|told|understood|won|written"
PASSIVE = re.compile(rf"\b(?:{BE}) (?:(?!(?:{NEVER_BETWEEN}) )[\w'-]+ )?"
                     rf"(?!(?:\w*eed|bed|hundred|naked|red|sacred|shed)\b)(?:{PARTICIPLES})\b", re.I)

SKIPPED = r"^ *(```+|~~~+).*?^ *\1 *$|^\$\$.*?\$\$ *$|(?<!`)<!--(?! style: [^\s-]).*?-->|^\([\w-]+\)=$"
CODE = re.compile(r"`[^`]+`|\$[^$\n]+\$(?!\w)")
MARK = re.compile(r"(?<!`)<!-- style: [^\s-].*?-->")
YAML_MARK = re.compile(r"(?:^| +)# style: \S.*", re.M)
STARTER = re.compile(r" *(?:[-*+] |\d+\. |#+ |> |:::+(?:\{[\w-]+\})?|(?=\|))")
YAML_VALUE = re.compile(r"^( *)(- )?(\w+): +(?!&\w+$)(\S.*(?:\n(?: *$|\1(?(2)  ) +\S.*))*)", re.M)
WORD = re.compile(rf"(?:{CODE.pattern}|\S)+")
END = re.compile(r"""[^.](?<!e\.g)(?<!i\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)(?<!\b[A-Z])[.!?]["'”’)\]*_]*$""")


@dataclass
class Paragraph:
    line: int
    text: str
    marks: int = 0


def paragraphs(text: str) -> list[Paragraph]:
    """Markdown's paragraphs, headings, list items and table cells."""
    found, marks, is_open = [], 0, False
    for number, line in enumerate(text.split("\n"), 1):
        starter = STARTER.match(line)
        words = line[starter.end() if starter else 0:].strip()
        for part in re.split(r"(?<!\\)\|", words) if words.startswith("|") else [words]:
            part, marks = MARK.sub("", part), marks + len(MARK.findall(part))
            if not re.search(r"[^\s:-]", part):
                continue
            if is_open and not starter:
                found[-1].text += f"\n{part}"
            else:
                found.append(Paragraph(number, part))
            found[-1].marks, marks = found[-1].marks + marks, 0
        is_open = bool(part.strip()) and not line.lstrip().startswith(("#", ":::"))
    return found + [Paragraph(number, "", marks)] * bool(marks)


def of_markdown(text: str) -> str:
    text = re.sub(SKIPPED, lambda part: "\n" * part[0].count("\n"), text, flags=re.M | re.S)
    return re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", text)


def of_yaml(text: str, keys: str = TEXT_KEYS) -> str:
    """The values of text keys as Markdown, each on its line. It knows as much of YAML as the project uses."""
    lines = ["<!-- style: marked -->" * bool(YAML_MARK.search(line)) for line in text.split("\n")]
    for value in YAML_VALUE.finditer(text):
        first, *more = YAML_MARK.sub("", re.sub(r"^&\w+ ", "", value[4])).strip("\"'").split("\n")
        if first.startswith(("|", ">")):
            example = re.match(" *", more[0])[0] + "  "
            first, more = "", ["" if line.startswith(example) else line.strip() for line in more]
        for at, line in enumerate(["- " + first, *more], text.count("\n", 0, value.start())):
            lines[at] = line * bool(re.match(f"(?:{keys})", value[3])) + lines[at]
    return "\n".join(lines)


def of_help(text: str) -> str:
    """Prose and the descriptions of options as Markdown, without usage and without defaults of one word."""
    text = re.sub(r"(\s+)\(default:(\s+)\S+\)", r"\1\2", text)
    return re.sub(r"^ {1,11}\S(?:.*? {2,}(?=\S)|.*)", lambda row: "- " * row[0].endswith("  "), text, flags=re.M)


def read(root: Path, programs: list[Path]) -> dict[str, str]:
    """Every text as Markdown, by its name."""
    ask = partial(subprocess.check_output, cwd=root, text=True)
    files = sorted({file for pattern in FILES for file in root.glob(pattern)})
    texts = {}
    for file in files:
        text, keys = file.read_text(), MESSAGES.get(file.name, TEXT_KEYS)
        texts[str(file.relative_to(root))] = of_markdown(text) if file.suffix == ".md" else of_yaml(text, keys)
    for program in programs:
        verbs = re.findall(r"^  ([a-z]+) {2,}", ask([program, "--help"]), re.M) if program.name == "checker" else []
        commands = [[program, verb, "--help"] for verb in verbs] or [[program, "--help"]]
        with ThreadPoolExecutor() as pool:
            for command, said in zip(commands, pool.map(ask, commands)):
                texts[" ".join([program.name, *command[1:]])] = of_help(said)
    return texts


def sentences(text: str) -> Iterator[tuple[int, list[str]]]:
    """The words of each sentence, and on which line of the paragraph it begins."""
    words, first = list(WORD.finditer(text)), 0
    for end, word in enumerate(words, 1):
        if end == len(words) or END.search(word[0]):
            yield text.count("\n", 0, words[first].start()), [re.sub(r"\s+", " ", each[0]) for each in words[first:end]]
            first = end


def faults(plain: str) -> list[str]:
    found = [f'"{match[0]}", {advice}' for pattern, advice in BANNED.items()
             if (match := re.search(pattern, plain, re.I))]
    count = len(re.findall(r"\S*\w\S*", plain))
    return found + ([f"{count} words, {MOST_WORDS} is the most"] if count > MOST_WORDS else [])


def look(root: Path, programs: list[Path], update: bool = False) -> list[str]:
    """What is wrong, a line each; `update` removes from style.old what no longer applies."""
    list_of_old, texts = root / "checker/tests/style.old", read(root, programs)
    old = Counter(list_of_old.read_text().splitlines() if list_of_old.exists() else [])
    looked_at = {name.split()[0] for name in texts}
    still = Counter({entry: old[entry] for entry in old if " --help" in entry and entry.split()[0] not in looked_at})
    problems, exceptions, passive = [], 0, defaultdict(list)
    for name, text in texts.items():
        for paragraph in paragraphs(text):
            exceptions, marks = exceptions + paragraph.marks, paragraph.marks
            for line, words in sentences(paragraph.text):
                place, sentence = f"{name}:{paragraph.line + line}", " ".join(words)
                plain = CODE.sub("code", sentence).replace("*", "")
                if len(words) >= 4 and "compile_errors" not in name:
                    passive[re.sub(" .*", " --help", name)].append(place if PASSIVE.search(plain) else "")
                entry = f"{name} {hashlib.sha256(sentence.encode()).hexdigest()[:8]}"
                wrong = faults(plain)
                if wrong and marks:
                    marks -= 1
                elif wrong and still[entry] < old[entry]:
                    still[entry] += 1
                elif wrong:
                    problems.append(f"{place}: {'; '.join(wrong)} — {sentence}")
            if marks:
                problems.append(f"{name}:{paragraph.line}: this marker excuses nothing, remove it")
    shares = dict(entry.rsplit(" ", 1) for entry in old if entry.endswith("%"))
    for file, places in passive.items():
        at = [place.removeprefix(f"{file}:") for place in places if place]
        allowed = int(shares.get(file, f"{MOST_PASSIVE}%")[:-1])
        share = -(-100 * len(at) // len(places)) if len(places) >= FEWEST_SENTENCES else 0
        still[f"{file} {min(share, allowed)}%"] += share > MOST_PASSIVE and file in shares
        if share > allowed:
            problems.append(f"{file}: {share} % of sentences are passive, {allowed} % is the most — {', '.join(at)}")
    if exceptions > MOST_EXCEPTIONS:
        problems.append(f"{exceptions} exceptions are marked, {MOST_EXCEPTIONS} is the most")
    if update:
        list_of_old.write_text("".join(f"{entry}\n" for entry in sorted(still.elements())))
    elif gone := sorted({entry.rpartition(" ")[0] for entry in old - still}):
        problems.append(f"style.old: entries of {', '.join(gone)} no longer apply. Run style.py --update-old")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Holds the texts that people read to plain English.")
    parser.add_argument("--update-old", action="store_true", help="remove from style.old what no longer applies")
    parser.add_argument("programs", nargs="*", type=Path, metavar="PROGRAM", help="read its --help, too")
    options = parser.parse_args()
    if not options.programs:
        print("No program's --help was looked at but ./workbook's. To include the checker, give its path.")
    problems = look(ROOT, [ROOT / "workbook", *map(Path.resolve, options.programs)], options.update_old)
    fix = "Fix: write short sentences, subject first; the top of checker/tests/style.py has the rules."
    print(*([*problems, fix] if problems else ["The texts are plain."]), sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
