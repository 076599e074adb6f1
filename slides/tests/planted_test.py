"""The rules find what is planted: a deck with one fault after the other.

usage: planted_test.py SITE"""

import sys
import unittest
from pathlib import Path

from browser import reader
from browser.check import RULES
from browser.chromium import Chromium, NoChromium, find

SITE = Path(sys.argv.pop(1)).resolve()

FAULTS = {
    "does not fit on the slide": "slide.insertAdjacentHTML('beforeend', '<p>' + 'many words '.repeat(400) + '</p>')",
    "is wider than its box": "slide.insertAdjacentHTML('beforeend', '<pre><code>' + 'x'.repeat(300) + '</code></pre>')",
    "lie over each other": "slide.insertAdjacentHTML('beforeend', '<p style=\"margin-top:-90px\">over it</p>')",
    "is broken": "slide.insertAdjacentHTML('beforeend', '<img src=\"nowhere.png\" alt=\"nothing\">')",
    "no font has": "slide.insertAdjacentHTML('beforeend', '<p>\\u{10FFFC}</p>')",
    "no speaker notes": "slide.querySelector('aside').remove()",
    "without alternative text": "slide.insertAdjacentHTML('beforeend', '<svg width=\"9\" height=\"9\" viewBox=\"0 0 9 9\"></svg>')",
    "a rect is cut off": "slide.insertAdjacentHTML('beforeend', '<svg width=\"90\" height=\"30\" viewBox=\"0 0 90 30\" "
                         "aria-label=\"a\"><rect x=\"60\" width=\"40\" height=\"20\"/></svg>')",
    "is cut off": "slide.insertAdjacentHTML('beforeend', '<svg width=\"90\" height=\"30\" viewBox=\"0 0 90 30\" "
                  "aria-label=\"a\"><text x=\"60\" y=\"20\" font-size=\"20\">too long</text></svg>')",
}


class Planted(unittest.TestCase):
    def test_each_fault_is_found(self):
        with Chromium() as page:
            for complaint, fault in FAULTS.items():
                with self.subTest(complaint):
                    self.open(page)
                    page.run(f"(() => {{ const slide = Reveal.getCurrentSlide(); {fault}; }})()")
                    page.run("new Promise(done => setTimeout(() => done(true), 100))")
                    self.assertTrue(any(complaint in problem for problem in page.run("slideProblems()")))

    def test_serious_barriers_are_found(self):
        with Chromium() as page:
            self.open(page)
            if not reader.bring_axe(page):
                self.skipTest("axe-core is not installed")
            self.assertEqual(reader.accessibility(page), [])
            page.run("Reveal.getCurrentSlide().insertAdjacentHTML('beforeend', '<p style=\"color:#ccc\">pale</p>')")
            self.assertIn("color-contrast", " ".join(reader.accessibility(page)))

    def test_errors_and_requests_are_found(self):
        with Chromium() as page:
            self.open(page)
            self.assertEqual(reader.complaints(page), [])
            page.run("console.error('planted'); setTimeout(() => { throw new Error('thrown'); }); "
                     "fetch('http://192.0.2.1/').catch(() => 0); true")
            page.run("new Promise(done => setTimeout(() => done(true), 200))")
            found = " ".join(reader.complaints(page))
            for complaint in ("planted", "thrown", "leaves the machine: http://192.0.2.1/"):
                self.assertIn(complaint, found)

    def open(self, page):
        page.open(f"file://{SITE}/decks/0_orientation.html")
        page.run(RULES)
        page.run("Reveal.slide(1)")


if __name__ == "__main__":
    try:
        find()
    except NoChromium as error:
        print(f"not tried: {error}")
        sys.exit(77)
    unittest.main()
