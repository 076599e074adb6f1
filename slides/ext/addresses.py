"""Where each TODO's slide is: todos.txt beside the site, which `checker slides N` reads.

A TODO's slide is the one with the label (todo-N)= above its heading. A TODO of the course without a
slide, or a slide without a TODO, fails the build."""

import re
from pathlib import Path

import course_source
from docutils import nodes
from sphinx.errors import ExtensionError


def name_slides(app, doctree):
    """A slide goes by the last name of its section: for a TODO's that is its label."""
    for section in doctree.findall(nodes.section):
        labels = [name for name in section["ids"] if re.fullmatch(r"todo-\d+", name)]
        section["ids"] = [name for name in section["ids"] if name not in labels] + labels


def write_addresses(app, error):
    if error or app.builder.name != "revealjs":
        return
    labels = app.env.domaindata["std"]["anonlabels"]
    slides = {int(label[5:]): f"{place[0]}.html#/{place[1]}"
              for label, place in labels.items() if re.fullmatch(r"todo-\d+", label)}
    wanted = set(course_source.numbers())
    if set(slides) != wanted:
        raise ExtensionError(f"TODOs without a slide: {sorted(wanted - set(slides))}; "
                             f"slides without a TODO: {sorted(set(slides) - wanted)}")
    lines = [f"{number} {address}\n" for number, address in sorted(slides.items())]
    Path(app.outdir, "todos.txt").write_text("".join(lines))


def setup(app):
    app.connect("doctree-read", name_slides)
    app.connect("build-finished", write_addresses)
    return {"parallel_read_safe": True}
