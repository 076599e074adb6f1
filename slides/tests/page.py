"""A built deck, read: its slides and what each holds."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr", "input", "rect", "line", "polygon", "path"}


@dataclass
class Slide:
    id: str
    title: str = ""
    notes: bool = False
    answers: int = 0
    questions: int = 0


@dataclass
class Page:
    slides: list = field(default_factory=list)
    links: list = field(default_factory=list)  # href of <a>
    loads: list = field(default_factory=list)  # src, and href of <link>
    ids: set = field(default_factory=set)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.page, self.in_title = Page(), False

    def handle_starttag(self, tag, pairs):
        attributes = dict(pairs)
        classes = (attributes.get("class") or "").split()
        if "id" in attributes:
            self.page.ids.add(attributes["id"])
        if tag == "section" and "id" in attributes:
            self.page.slides.append(Slide(attributes["id"]))
        if tag == "a" and "href" in attributes:
            self.page.links.append(attributes["href"])
        if tag in ("script", "img", "iframe", "source") and attributes.get("src"):
            self.page.loads.append(attributes["src"])
        if tag == "link" and attributes.get("rel") in ("stylesheet", "icon"):
            self.page.loads.append(attributes["href"])
        if self.page.slides:
            slide = self.page.slides[-1]
            slide.notes |= "notes" in classes
            slide.questions += "question" in classes
            slide.answers += "answer" in classes
        self.in_title = tag in ("h1", "h2")

    def handle_endtag(self, tag):
        if tag in ("h1", "h2"):
            self.in_title = False

    def handle_data(self, data):
        if self.in_title and self.page.slides:
            self.page.slides[-1].title += data


def read(file):
    reader = Reader()
    reader.feed(file.read_text())
    return reader.page
