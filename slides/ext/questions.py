"""{question} asks, and hides its answer until the next key; {notes} are the speaker's."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx_revealjs.builders import RevealjsHTMLBuilder


class question(nodes.General, nodes.Element):
    pass


class answer(nodes.General, nodes.Element):
    pass


class speaker_notes(nodes.General, nodes.Element):
    pass


class Question(SphinxDirective):
    """The argument asks, the content answers."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        self.assert_has_content()
        asked = nodes.paragraph(classes=["asked"])
        asked += self.parse_inline(self.arguments[0])[0]
        node = question()
        hidden = answer()
        hidden += self.parse_content_to_nodes()
        node += [asked, hidden]
        return [node]


class Notes(SphinxDirective):
    has_content = True

    def run(self):
        self.assert_has_content()
        node = speaker_notes()
        node += self.parse_content_to_nodes()
        return [node]


def on_slides(translator):
    return isinstance(translator.builder, RevealjsHTMLBuilder)


def visit_question(translator, node):
    translator.body.append('<div class="question">\n')


def leave_div(translator, node):
    translator.body.append("</div>\n")


def visit_answer(translator, node):
    translator.body.append('<div class="answer fragment">\n' if on_slides(translator) else
                           '<details class="answer"><summary>Answer</summary>\n')


def leave_answer(translator, node):
    translator.body.append("</div>\n" if on_slides(translator) else "</details>\n")


def visit_notes(translator, node):
    translator.body.append('<aside class="notes">\n' if on_slides(translator) else
                           '<aside class="notes"><p class="label">More on this</p>\n')


def leave_notes(translator, node):
    translator.body.append("</aside>\n")


def setup(app):
    for kind, handlers in ((question, (visit_question, leave_div)), (answer, (visit_answer, leave_answer)),
                           (speaker_notes, (visit_notes, leave_notes))):
        app.add_node(kind, html=handlers, revealjs=handlers)
    app.add_directive("question", Question)
    app.add_directive("notes", Notes)
    return {"parallel_read_safe": True}
