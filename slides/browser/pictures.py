"""Every slide as a picture, nine on a sheet, to be looked at."""

import base64
import math

from browser.chromium import Chromium, NoChromium

PER_ROW, PER_SHEET = 3, 9


def draw_sheets(site, output, decks, dark=False, width=1280, height=720):
    """Each slide with all its fragments shown, as at its end."""
    output.mkdir(parents=True, exist_ok=True)
    try:
        with Chromium(width, height, dark) as page:
            for deck in decks:
                pictures = list(slides_of(page, f"file://{site}/decks/{deck}.html"))
                for sheet in range(math.ceil(len(pictures) / PER_SHEET)):
                    file = output / f"{deck}{'-dark' if dark else ''}-{sheet + 1}.png"
                    file.write_bytes(sheet_of(page, pictures[sheet * PER_SHEET:(sheet + 1) * PER_SHEET]))
                    print(file)
    except NoChromium as error:
        print(f"error: {error}")
        return 1
    return 0


def slides_of(page, address):
    page.open(address)
    for index in range(page.run("Reveal.getTotalSlides()")):
        page.turn_to(index)
        yield page.picture()


def sheet_of(page, pictures):
    images = "".join(f'<img src="data:image/png;base64,{base64.b64encode(data).decode()}" '
                     'style="width:640px;border:1px solid #888;margin:3px">' for data in pictures)
    html = f'<body style="margin:0;background:#777;width:{PER_ROW * 650}px">{images}</body>'
    page.call("Page.navigate", url="about:blank")
    page.show(html)
    page.wait("[...document.images].every(image => image.complete)")
    return page.picture(PER_ROW * 650, math.ceil(len(pictures) / PER_ROW) * 370)
