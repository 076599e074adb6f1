"""One source, two forms: `-b revealjs` makes the slides, `-b singlehtml` the handout."""

import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here / "ext")]

import mathematics  # noqa: E402
from sphinx_revealjs.utils import get_internal_static_path  # noqa: E402

project = "Worldsize"
author = "the Worldsize course"
language = "en"
master_doc = "index"
include_patterns = ["index.md", "decks/*.md"]
extensions = ["myst_parser", "sphinx_revealjs", "code_blocks", "questions", "drawings", "todos", "captured",
              "mathematics", "addresses"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
# A slide begins at each ##, and reveal.js finds it by its own name.
myst_heading_anchors = 0
smartquotes = False
html_math_renderer = "local"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
nitpicky = True
# Figures and the course are read while building, and Sphinx does not see them change: so all are always read.
suppress_warnings = ["config.cache"]

revealjs_static_path = ["static", str(mathematics.KATEX.parent / "katex.min.js")]
revealjs_style_theme = "white"
revealjs_css_files = ["slides.css", "code.css"]
revealjs_js_files = ["katex.min.js", "page.js"]
revealjs_use_section_ids = True
revealjs_script_plugins = [
    {"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"},
    {"name": "RevealSearch", "src": "revealjs/plugin/search/search.js"},
    {"name": "RevealZoom", "src": "revealjs/plugin/zoom/zoom.js"},
]
revealjs_script_conf = {
    "width": 1280, "height": 720, "margin": 0.03, "center": False, "hash": True, "history": True,
    "slideNumber": "c/t", "transition": "none", "backgroundTransition": "none", "navigationMode": "linear",
    "pdfSeparateFragments": True, "pdfMaxPagesPerSlide": 1, "controlsTutorial": False, "help": True,
}

html_theme = "basic"
html_static_path = [*revealjs_static_path, str(get_internal_static_path() / "revealjs" / "dist" / "theme" / "fonts")]
html_css_files = ["handout.css", "code.css"]
html_js_files = ["katex.min.js", "page.js"]
html_title = "Worldsize: the handout"
html_sidebars = {"**": []}
html_use_index = False
html_domain_indices = False
