"""Directives that show a TODO: {todo} 8 (its own words) and {todo-code} 8 (its code).

    ```{todo-code} 8
    :show: before        before, after, or both (the default)
    :place: 1            only this one of its places
    ```"""

import course_source
from code_blocks import code_block
from docutils import nodes
from docutils.parsers.rst import directives
from questions import on_slides, speaker_notes
from sphinx.util.docutils import SphinxDirective


class Todo(SphinxDirective):
    """Where it is done, its first paragraph, what to expect; the rest goes to the notes."""

    required_arguments = 1

    def run(self):
        number = int(self.arguments[0])
        entry = course_source.todo(number)
        file, language = course_source.file_of(number)
        found = [nodes.paragraph("", "", nodes.strong("", entry["title"]), nodes.Text(" in "),
                                 nodes.literal("", file), classes=["todo-title"])]
        words = course_source.paragraphs(entry["text"])
        prose = [text for is_code, text in words if not is_code]
        expected = [text for text in prose if text.startswith("Expect")]
        shown = prose[:1] + [code for is_code, code in words[1:2] if is_code]
        if not expected:
            shown += prose[1:2]
        for text in shown:
            is_code = (True, text) in words
            found.append(code_block(text, language) if is_code else self.paragraph(text))
        found += [self.paragraph(text, "expect") for text in expected if text not in shown]
        return found + [self.notes(words, entry)]

    def paragraph(self, text, *classes):
        node = nodes.paragraph(classes=list(classes))
        children, messages = self.parse_inline(_names_as_code(" ".join(text.split())))
        node += children
        return node

    def notes(self, words, entry):
        node = speaker_notes()
        node += [nodes.paragraph("", " ".join(text.split())) for is_code, text in words if not is_code]
        for label in ("hint", "shape", "explanation"):
            if label in entry:
                node += nodes.paragraph("", "", nodes.strong("", label.capitalize() + ": "),
                                        nodes.Text(" ".join(entry[label].split())))
        return node


def _names_as_code(text):
    """Course texts are plain; `names` in backticks are code in MyST as well. Stars are not emphasis."""
    return text.replace("*", r"\*").replace("[", r"\[")


class revealed(nodes.General, nodes.Element):
    """An answer: on slides it comes with the next key, in the handout it is folded up."""


def visit_revealed(translator, node):
    translator.body.append('<div class="revealed fragment">\n' if on_slides(translator) else
                           '<details class="revealed"><summary>The code</summary>\n')


def leave_revealed(translator, node):
    translator.body.append("</div>\n" if on_slides(translator) else "</details>\n")


class TodoCode(SphinxDirective):
    """The idea comes first: what is to be done stands in {todo}, and its code behind a key."""

    required_arguments = 1
    option_spec = {
        "show": lambda value: directives.choice(value, ("before", "after", "both")),
        "place": directives.positive_int,
    }

    def run(self):
        number = int(self.arguments[0])
        _, language = course_source.file_of(number)
        found = course_source.places(number)
        if "place" in self.options:
            found = [found[self.options["place"] - 1]]
        show = self.options.get("show", "both")
        versions = []
        if show in ("before", "both"):
            versions.append(self.version("before", [place[0] for place in found], language))
        if show in ("after", "both"):
            hidden = revealed()
            hidden += self.version("after", [place[1] for place in found], language)
            versions.append(hidden)
        return versions

    def version(self, label, texts, language):
        # Places that read the same are shown once.
        texts = list(dict.fromkeys(texts))
        text = "\n…\n".join(texts) if any(texts) else "// nothing yet"
        box = nodes.container(classes=["version", label])
        box += nodes.paragraph("", label, classes=["label"])
        box += code_block(text, language)
        return box


def setup(app):
    handlers = (visit_revealed, leave_revealed)
    app.add_node(revealed, html=handlers, revealjs=handlers)
    app.add_directive("todo", Todo)
    app.add_directive("todo-code", TodoCode)
    return {"parallel_read_safe": True}
