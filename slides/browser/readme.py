"""The pictures of README.md: a verdict, a slide and a monitor page, all of real output.

usage: readme.py SITE MONITOR_PAGE, from slides/. SITE is the built slides, MONITOR_PAGE what
`./workbook monitor` wrote. The verdict is captured/check_05_mean_of_means.txt."""

import html
import re
import sys
from pathlib import Path

SLIDES = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SLIDES))

from browser.chromium import Chromium  # noqa: E402, which lies there

FOLDER = SLIDES / "pictures"
VERDICT = "check_05_mean_of_means"
TERMINAL = """<body style="margin:0;background:#1e2329"><pre style="margin:0;padding:16px 20px;color:#e6edf3;
font:14px/1.4 'DejaVu Sans Mono',monospace;display:inline-block"><span style="color:#8b949e">$ ./workbook check 05</span>
{}</pre></body>"""


def coloured(text):
    """As a terminal shows it: marks in colour, titles bold."""
    text = re.sub(r"(?m)^( *)(✗)(.*)$", r'\1<b style="color:#ff7b72">\2\3</b>', html.escape(text, quote=False))
    text = re.sub(r"(?m)^( *)(✓)(.*)$", r'\1<b style="color:#7ee787">\2\3</b>', text)
    return re.sub(r"\A(.*)$", r"<b>\1</b>", text, count=1, flags=re.M)


def draw_verdict():
    text = (SLIDES / "captured" / f"{VERDICT}.txt").read_text()
    text = text.split("\n\n  This run:")[0]  # what follows tells of the run, not of the mistake
    with Chromium(1000, 800) as page:
        page.show(TERMINAL.format(coloured(text)))
        size = page.run("(box => [box.width, box.height])(document.querySelector('pre').getBoundingClientRect())")
        (FOLDER / "verdict.png").write_bytes(page.picture(*size))


def draw_slide(site, deck="4_ddp", title="Buckets, and overlap"):
    with Chromium(1000, 563) as page:
        page.open(f"file://{site}/decks/{deck}.html")
        page.turn_to(page.run("Reveal.getSlides().findIndex(slide => "
                              f"slide.querySelector('h2')?.textContent.startsWith({title!r}))"))
        (FOLDER / "slide.png").write_bytes(page.picture())


def draw_monitor(file, width=1000, height=648):
    with Chromium(width, height) as page:
        page.open(f"file://{file}")
        (FOLDER / "monitor.png").write_bytes(page.picture())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    draw_verdict()
    draw_slide(Path(sys.argv[1]).resolve())
    draw_monitor(Path(sys.argv[2]).resolve())
