"""Every slide once in headless Chromium; the whole form is ./workbook slides --check."""

import sys
from pathlib import Path

from browser.check import check_site

site = Path(sys.argv[1])
if not (site / "decks").exists():
    print("the site was not built: see the test slides_site")
    sys.exit(77)
sys.exit(check_site(site, sorted(file.stem for file in (site / "decks").glob("*.html")), every_slide=False))
