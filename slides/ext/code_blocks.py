"""Code on slides and in the handout: highlighted here, so that no script has to do it later."""

import html

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound


def code_block(text, language):
    node = nodes.literal_block(text, text, language=language)
    return node


def highlighted(text, language):
    try:
        lexer = get_lexer_by_name({"sh": "bash", "default": "text", "none": "text"}.get(language, language))
    except ClassNotFound:
        return html.escape(text)
    return highlight(text, lexer, HtmlFormatter(nowrap=True)).rstrip("\n")


def visit_literal_block(translator, node):
    language = node.get("language", "text")
    longest = max((len(line) for line in node.astext().splitlines()), default=0)
    # Long lines get smaller type rather than a scroll bar, which nobody can use on a wall.
    size = "" if longest <= 69 else " small" if longest <= 85 else " smaller"
    kept = " ".join(node.get("classes", []))
    translator.body.append(f'<pre class="code {html.escape(language)}{size} {kept}" tabindex="0">'
                           f"<code>{highlighted(node.astext(), language)}</code></pre>\n")
    raise nodes.SkipNode


def setup(app):
    handlers = (visit_literal_block, None)
    app.add_node(nodes.literal_block, override=True, html=handlers, revealjs=handlers)
    return {"parallel_read_safe": True}
