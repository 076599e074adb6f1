"""What the figures are drawn with: boxes, lines and words in an SVG, in colours that people with any
kind of colour vision tell apart (Okabe and Ito, Color Universal Design, 2008).

Lines and words outside of boxes take the page's own colour, so that they show on light and dark."""

import html
from dataclasses import dataclass

ORANGE, SKY, GREEN, PURPLE = "#E69F00", "#56B4E9", "#2FB58C", "#CC79A7"
YELLOW, VERMILION, GREY = "#F0E442", "#E8743B", "#B8BEC5"
RANKS = (ORANGE, SKY, GREEN, PURPLE)
INK = "#14171a"  # on coloured boxes, on light and on dark pages alike


@dataclass
class Step:
    """One picture: what is written below it, what is read out in its place, and the SVG."""

    caption: str
    alt: str
    svg: str


class Drawing:
    def __init__(self, width=1180, height=440):
        self.width, self.height, self.parts = width, height, []

    def box(self, x, y, w, h, fill=None, text="", size=22, dashed=False, faint=False, bold=False, radius=6):
        line = ' stroke-dasharray="7 6"' if dashed else ""
        paint = f'fill="{fill}"' if fill else 'fill="none"'
        stroke = "currentColor" if not fill or dashed else INK
        opacity = ' opacity="0.3"' if faint else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}" {paint} '
                          f'stroke="{stroke}" stroke-width="1.6"{line}{opacity}/>')
        if text != "":
            self.words(x + w / 2, y + h / 2, text, size, INK if fill else "currentColor", bold=bold)
        return self

    def words(self, x, y, text, size=22, colour="currentColor", anchor="middle", bold=False):
        """Lines of text around y, \\n between them."""
        lines, size = str(text).split("\n"), round(size * 1.15, 1)
        weight = ' font-weight="600"' if bold else ""
        for index, line in enumerate(lines):
            base = y + size * 0.35 + (index - (len(lines) - 1) / 2) * size * 1.2
            self.parts.append(f'<text x="{x:g}" y="{base:.1f}" font-size="{size}" fill="{colour}" '
                              f'text-anchor="{anchor}"{weight}>{html.escape(line)}</text>')
        return self

    def line(self, x1, y1, x2, y2, width=2.2, dashed=False, colour="currentColor"):
        line = ' stroke-dasharray="7 6"' if dashed else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" '
                          f'stroke-width="{width}"{line}/>')
        return self

    def arrow(self, x1, y1, x2, y2, width=2.6, colour="currentColor", dashed=False):
        """A line with a head at its end."""
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1
        ux, uy, head = (x2 - x1) / length, (y2 - y1) / length, 6 + 3 * width
        bx, by = x2 - ux * head, y2 - uy * head
        self.line(x1, y1, bx, by, width, dashed, colour)
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in (
            (x2, y2), (bx - uy * head / 2.2, by + ux * head / 2.2), (bx + uy * head / 2.2, by - ux * head / 2.2)))
        self.parts.append(f'<polygon points="{points}" fill="{colour}"/>')
        return self

    def curve(self, x1, y1, cx, cy, x2, y2, width=2.6, colour="currentColor"):
        """A bent arrow by way of (cx, cy); its head points as the curve ends."""
        length = ((x2 - cx) ** 2 + (y2 - cy) ** 2) ** 0.5 or 1
        ux, uy = (x2 - cx) / length, (y2 - cy) / length
        self.parts.append(f'<path d="M {x1:g} {y1:g} Q {cx:g} {cy:g} {x2 - 12 * ux:.1f} {y2 - 12 * uy:.1f}" '
                          f'fill="none" stroke="{colour}" stroke-width="{width}"/>')
        return self.arrow(x2 - 13 * ux, y2 - 13 * uy, x2, y2, width, colour)

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}">'
                + "".join(self.parts) + "</svg>")

    def step(self, caption, alt):
        return Step(caption, alt, self.svg())


def rank_colour(rank):
    return RANKS[rank % len(RANKS)]
