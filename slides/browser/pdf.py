"""One PDF for each deck, through reveal.js' print view."""

import base64

from browser.chromium import Chromium, NoChromium


def print_decks(site, output, decks):
    output.mkdir(parents=True, exist_ok=True)
    try:
        with Chromium() as page:
            for deck in decks:
                page.open(f"file://{site}/decks/{deck}.html?print-pdf")
                page.wait("document.querySelectorAll('.pdf-page').length > 0")
                printed = page.call("Page.printToPDF", timeout=120, preferCSSPageSize=True, printBackground=True)
                file = output / f"{deck}.pdf"
                file.write_bytes(base64.b64decode(printed["data"]))
                pages = page.run("document.querySelectorAll('.pdf-page').length")
                print(f"{file}: {pages} pages")
    except NoChromium as error:
        print(f"error: {error}")
        return 1
    return 0
