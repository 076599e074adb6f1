"""{drawing} NAME draws slides/figures/NAME.py: one picture, or one after the other.

    ```{drawing} ring_all_reduce
    :step: 3             only this one
    ```

A figure module has steps(), which returns a list of drawing.Step. On a slide the next key shows the
next step in the same place; the handout shows all of them, one below the other."""

import html
import importlib

from docutils import nodes
from docutils.parsers.rst import directives
from questions import on_slides
from sphinx.util.docutils import SphinxDirective


class drawn(nodes.General, nodes.Element):
    pass


class Drawing(SphinxDirective):
    required_arguments = 1
    option_spec = {"step": directives.positive_int}

    def run(self):
        name = self.arguments[0]
        try:
            steps = importlib.import_module("figures." + name).steps()
        except ModuleNotFoundError as error:
            raise self.error(f"no figure {name}: {error}") from error
        if "step" in self.options:
            steps = [steps[self.options["step"] - 1]]
        return [drawn("", steps=[(step.caption, step.alt, step.svg) for step in steps], name=name)]


def effect(index, count):
    """Steps replace each other: reveal.js' fragments, numbered so that one goes as the next comes."""
    if count == 1:
        return ""
    if index == 0:
        return ' class="fragment fade-out" data-fragment-index="0"'
    kind = "fragment" if index == count - 1 else "fragment current-visible"
    return f' class="{kind}" data-fragment-index="{index - 1}"'


def visit_drawn(translator, node):
    slides, steps = on_slides(translator), node["steps"]
    translator.body.append(f'<div class="drawn{" steps" if len(steps) > 1 else ""}" data-figure="{node["name"]}">\n')
    for index, (caption, alt, svg) in enumerate(steps):
        picture = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt, quote=True)}" ', 1)
        words = f"<figcaption>{caption}</figcaption>" if caption else ""
        translator.body.append(f"<figure{effect(index, len(steps)) if slides else ''}>{picture}{words}</figure>\n")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_node(drawn, html=(visit_drawn, None), revealjs=(visit_drawn, None))
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}
