"""Mathematics by KaTeX, from a local file; it writes MathML, which browsers draw themselves."""

import html
from pathlib import Path

import sphinxcontrib
from docutils import nodes

KATEX = next(Path(folder) / "katex.min.js" for folder in sphinxcontrib.__path__
             if (Path(folder) / "katex.min.js").exists())


def visit_math(translator, node):
    translator.body.append(f'<span class="math">{html.escape(node.astext())}</span>')
    raise nodes.SkipNode


def visit_displayed(translator, node):
    translator.body.append(f'<div class="math">{html.escape(node.astext())}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("local", (visit_math, None), (visit_displayed, None))
    return {"parallel_read_safe": True}
