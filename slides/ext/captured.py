"""{captured} NAME shows what a command said: slides/captured/NAME.txt, written by refresh.py.

    ```{captured} check_08_not_wrapped
    :from: TODO 8        from the first line that has these words
    :until: step 1       to the last line before the next that has these
    ```

The command itself comes from captures.yaml. A file or an entry that is missing fails the build."""

import html
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

FOLDER = Path(__file__).resolve().parents[1]


class terminal(nodes.General, nodes.Element):
    pass


def captures():
    return yaml.safe_load((FOLDER / "captures.yaml").read_text())


class Captured(SphinxDirective):
    required_arguments = 1
    option_spec = {"from": directives.unchanged, "until": directives.unchanged, "no-command": directives.flag}

    def run(self):
        name = self.arguments[0]
        entry, file = captures().get(name), FOLDER / "captured" / f"{name}.txt"
        if entry is None:
            raise self.error(f"captures.yaml does not say how {name} was made")
        if not file.exists():
            raise self.error(f"{file} is not there. Fix: ./workbook slides --refresh {name}")
        self.env.note_dependency(str(file))
        lines = self.part(file.read_text().splitlines())
        command = "" if "no-command" in self.options else entry["command"]
        return [terminal("", command=command, text="\n".join(lines))]

    def part(self, lines):
        begin, end = 0, len(lines)
        if "from" in self.options:
            begin = self.line_with(lines, self.options["from"], 0)
        if "until" in self.options:
            end = self.line_with(lines, self.options["until"], begin + 1)
        while end > begin and not lines[end - 1].strip():
            end -= 1
        return lines[begin:end]

    def line_with(self, lines, words, begin):
        for index in range(begin, len(lines)):
            if words in lines[index]:
                return index
        raise self.error(f"{self.arguments[0]}: no line says {words!r} any more")


def visit_terminal(translator, node):
    longest = max((len(line) for line in node["text"].splitlines()), default=0)
    rows = len(node["text"].splitlines())
    size = " smaller" if longest > 79 or rows > 18 else " small" if longest > 69 or rows > 13 else ""
    command = f'<span class="command">$ {html.escape(node["command"])}</span>\n' if node["command"] else ""
    translator.body.append(f'<pre class="terminal{size}" tabindex="0"><code>{command}'
                           f'{html.escape(node["text"])}</code></pre>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_node(terminal, html=(visit_terminal, None), revealjs=(visit_terminal, None))
    app.add_directive("captured", Captured)
    return {"parallel_read_safe": True}
