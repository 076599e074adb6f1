"""Looks at the built slides in headless Chromium, as their reader would see them.

every_slide: each slide at two sizes, light and dark, with and without its fragments, the print view,
and rules of accessibility; takes a few minutes. Otherwise each slide once: for the tests."""

import sys
import time
from pathlib import Path

from browser import reader
from browser.chromium import Chromium, NoChromium, PageError

RULES = (Path(__file__).with_name("slide_rules.js")).read_text()


def check_site(site, decks, every_slide):
    begin = time.monotonic()
    try:
        problems, looked = look(site, decks, every_slide)
    except NoChromium as error:
        print(f"not checked: {error}")
        return 77
    except PageError as error:
        problems, looked = [str(error)], 0
    for problem in problems:
        print(f"wrong: {problem}")
    print(f"{looked} slides looked at in {time.monotonic() - begin:.0f} s: "
          + (f"{len(problems)} problems" if problems else "nothing wrong"))
    return 1 if problems else 0


def look(site, decks, every_slide):
    problems, looked = [], 0
    forms = [(1280, 720, False), (1920, 1080, False), (1280, 720, True)] if every_slide else [(1280, 720, False)]
    for width, height, dark in forms:
        with Chromium(width, height, dark) as page:
            for deck in ["../index", *decks]:
                name = f"{deck.removeprefix('../')} at {width}x{height}{', dark' if dark else ''}"
                page.open(f"file://{site}/decks/{deck}.html".replace("decks/../", ""))
                page.run(RULES)
                axe = reader.bring_axe(page)
                count = page.run("Reveal.getTotalSlides()")
                looked += count
                for index in range(count):
                    problems += of_slide(page, name, index, every_slide and width == 1280 and axe)
                if not every_slide and axe:
                    problems += [f"{name}: {problem}" for problem in reader.accessibility(page)]
            problems += [f"{width}x{height}: {problem}" for problem in reader.complaints(page)]
    with Chromium() as page:
        for deck in decks if every_slide else decks[:1]:
            address = f"file://{site}/decks/{deck}.html"
            problems += [f"{deck}: {problem}" for problem in reader.keyboard(page, address)]
            problems += [f"{deck}: {problem}" for problem in reader.print_view(page, address, RULES)]
        problems += reader.complaints(page)
    return problems, looked


def of_slide(page, name, index, axe):
    """A slide as it comes, and with everything shown that its keys bring."""
    problems = []
    for fragments in (-1, 1000):
        page.run(f"Reveal.slide({index}, 0, {fragments})")
        title = page.run("(Reveal.getCurrentSlide().querySelector('h1, h2') || {}).textContent")
        problems += [f"{name}, slide {index + 1} ({title}): {problem}" for problem in page.run("slideProblems()")]
        if axe:
            problems += [f"{name}, slide {index + 1} ({title}): {problem}" for problem in reader.accessibility(page)]
    return list(dict.fromkeys(problems))


if __name__ == "__main__":
    site = Path(sys.argv[1])
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ext"))
    import decks  # which lies there
    sys.exit(check_site(site, decks.names(site / "decks", ".html"), "--every-slide" in sys.argv))
