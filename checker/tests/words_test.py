"""Rules and words fit together: every finding and every line of evidence that a rule names has its
words, and no words are left that nobody names. usage: words_test.py PROJECT"""

import re
import sys
from pathlib import Path

import yaml

SPLITS = ("training", "validation", "test")
# How rules name them: {.id = "x"}, crash("x", add("x", and {"line", {{"value", ...
IDS = re.compile(r'(?:\.id = |\bid = |crash\(|add\()(?:\w[\w(). ]*\? )?"(\w+)"(?:\s*:\s*"(\w+)")?')
LINES = re.compile(r'\{(?:[\w.() >]+\? )?"(\w+)"(?:\s*:\s*"(\w+)")?,\s*\{(?:\{|\})')


def words_of(project):
    findings, lines, phrases = {}, {}, {}
    for file in sorted((project / "checker" / "chapters").glob("**/findings.yaml")):
        content = yaml.safe_load(file.read_text())
        findings |= {name: file for name in content["findings"]}
        for finding in content["findings"].values():
            lines |= {name: file for name in finding.get("evidence", {})}
        lines |= {name: file for name in content.get("lines", {})}
        phrases |= {name: file for name in content.get("phrases", {})}
    return findings, lines, phrases


def main():
    project = Path(sys.argv[1])
    findings, lines, phrases = words_of(project)
    files = [*(project / "checker/src/judge").glob("**/*.?pp"), *(project / "checker/chapters").glob("*/rules/*.cpp")]
    sources = "\n".join(file.read_text() for file in sorted(files))
    quoted = set(re.findall(r'"([\w.]+)"', sources))
    problems = []

    def named(name):  # a split's name, and "_at" where the place is known, are put together
        head, _, tail = name.partition("_")
        return name in quoted or (head in SPLITS and "_" + tail in quoted) or name.removesuffix("_at") in quoted

    for kind, words in (("finding", findings), ("line", lines), ("phrase", phrases)):
        problems += [f"{file}: no rule names the {kind} {name}" for name, file in words.items() if not named(name)]
    for pattern, kind, words in ((IDS, "finding", findings), (LINES, "line of evidence", lines)):
        for match in pattern.finditer(sources):
            problems += [f"a rule names the {kind} {name}, which no findings.yaml has"
                         for name in match.groups() if name and name not in words]
    for problem in problems:
        print(problem)
    print(f"{len(findings)} findings, {len(lines)} lines of evidence, {len(phrases)} phrases")
    return 1 if problems or len(findings) < 70 else 0


if __name__ == "__main__":
    sys.exit(main())
