"""Builds the slides and the handout and looks at what came out, without a browser.

usage: site_test.py OUTPUT_FOLDER"""

import re
import resource
import subprocess
import sys
import unittest
from pathlib import Path
from urllib.parse import urldefrag

import course_source
import decks as deck_files
import page
import yaml

ROOT = Path(__file__).resolve().parents[2]
SLIDES = ROOT / "slides"
OUTPUT = Path(sys.argv.pop(1)).resolve()
SITE = OUTPUT / "site"


def setUpModule():
    for form in ("--build-only", "--handout"):
        subprocess.run([sys.executable, SLIDES / "build.py", form, "--output", OUTPUT], check=True)
        if form == "--build-only":
            # Its own time, not that on the clock: other tests run beside this one.
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(f"building the site took {used.ru_utime + used.ru_stime:.1f} s of a core")
            assert used.ru_utime + used.ru_stime < 60, "the build takes longer than a minute"


def decks():
    return {name: page.read(SITE / "decks" / f"{name}.html") for name in deck_files.names(SITE / "decks", ".html")}


class Decks(unittest.TestCase):
    def test_each_is_whole(self):
        self.assertEqual([int(name.split("_")[0]) for name in decks()], list(range(12)))
        for name, deck in decks().items():
            titles = [slide.title for slide in deck.slides]
            with self.subTest(name):
                self.assertIn(len(titles), range(16, 28), "a title slide and 15 to 26 more")
                self.assertEqual(titles[1], "Aims")
                self.assertEqual(titles[-1], "To read")
                self.assertGreaterEqual(sum(slide.questions for slide in deck.slides), 2)
                self.assertEqual(sum(slide.questions for slide in deck.slides), sum(slide.answers for slide in deck.slides))
                self.assertEqual([slide.title for slide in deck.slides[1:] if not slide.notes], [], "slides without notes")

    def test_papers_are_linked(self):
        for name, deck in decks().items():
            with self.subTest(name):
                self.assertGreaterEqual(sum(link.startswith("https://") for link in deck.links), 2)


    def test_what_a_question_quotes_was_measured(self):
        from figures.data import rows
        first = rows("step_times")[0]
        one, four = first["ms_1_gpu"], first["ms_4_gpus"]
        words = (SLIDES / "decks" / "1_one_gpu.md").read_text()
        self.assertIn(f"A step takes {one} ms on one GPU, and {four} ms on four", words)
        self.assertIn(f"in {four} / {one} = {float(four) / float(one):.2f} of the time", words)

    def test_what_is_said_of_other_courses_is_in_the_data(self):
        from figures.data import rows
        one, four, eight = [row for row in rows("course_times") if row["run"] == "ImageWoof"]
        words = (SLIDES / "decks" / "9_workloads.md").read_text()
        self.assertIn(f"9025 pictures in {one['epoch_seconds']} s: {9025 / int(one['epoch_seconds']):.0f} a second", words)
        self.assertIn(f"took {one['epoch_seconds']} s, then {four['epoch_seconds']} s. "
                      f"Four GPUs alone explain {int(one['epoch_seconds']) / 4:.0f} s", words)
        self.assertIn(f"falls from {one['accuracy']} to {eight['accuracy']}", words)

    def test_the_gradient_worked_out_by_hand_is_the_figures(self):
        from figures import target_weights
        words = (SLIDES / "decks" / "9_workloads.md").read_text()
        right = target_weights.mean_over_targets()
        self.assertIn(f"their mean is ${right.numerator} / {right.denominator} = {float(right):.2f}$", words)


class Todos(unittest.TestCase):
    def test_each_has_its_slide_and_its_code(self):
        found = [int(number) for deck in decks().values() for slide in deck.slides
                 for number in re.findall(r"^todo-(\d+)$", slide.id)]
        self.assertEqual(found, course_source.numbers())

    def test_addresses_are_those_of_slides(self):
        for line in (SITE / "todos.txt").read_text().splitlines():
            number, address = line.split(" ")
            file, slide = address.split("#/")
            self.assertIn(slide, [s.id for s in page.read(SITE / file).slides])
            self.assertEqual(slide, f"todo-{number}")

    def test_code_is_that_of_the_solutions(self):
        for number in course_source.numbers():
            step = course_source.todo(number)["step"]
            name = Path(course_source.file_of(number)[0]).name
            solution = re.sub(r"\s+", " ", (ROOT / "solutions" / step / name).read_text())
            for _, after in course_source.places(number, solved=True):
                with self.subTest(todo=number):
                    self.assertIn(re.sub(r"\s+", " ", after), solution)

    def test_code_comes_behind_a_key(self):
        for folder, hidden in (("site", '<div class="revealed fragment">'),
                               ("handout", '<details class="revealed"><summary>The code</summary>')):
            pages = [file.read_text() for file in sorted((OUTPUT / folder).glob("**/*.html"))]
            answers = [text[:place.start()] for text in pages
                       for place in re.finditer('<div class="[^"]*version[^"]* after', text)]
            self.assertGreaterEqual(len(answers), 15)
            for before in answers:
                self.assertTrue(before.rstrip().endswith(hidden), before[-300:])

    def test_what_is_gone_fails_the_build(self):
        for number in (0, 99):
            self.assertRaises(course_source.CourseError, course_source.todo, number)
            self.assertRaises(course_source.CourseError, course_source.places, number)
        for text, complaint in (("```{captured} nothing\n```", "does not say how"), ("```{drawing} nothing\n```", "no figure"),
                                ("```{captured} run_01\n:from: no such words\n```", "no line says")):
            self.assertIn(complaint, build_of(text))


def build_of(text):
    """What a build says of a site of one page with this text; it must fail."""
    folder = OUTPUT / "broken"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text("# A page\n\n" + text + "\n")
    (folder / "conf.py").write_text(
        f"import sys\nsys.path[:0] = ['{SLIDES}', '{SLIDES}/ext']\nextensions = ['myst_parser', 'sphinx_revealjs', "
        "'code_blocks', 'questions', 'drawings', 'captured']\n")
    done = subprocess.run([sys.executable, "-m", "sphinx", "-b", "revealjs", "-W", "-q", "-E", folder, folder / "out"],
                          capture_output=True, text=True)
    assert done.returncode != 0, f"this should not build: {text}"
    return done.stderr


class Links(unittest.TestCase):
    def test_nothing_is_loaded_from_elsewhere(self):
        pages = list(SITE.rglob("*.html")) + list((OUTPUT / "handout").glob("*.html"))
        for file in pages:
            if "_static" in file.parts:
                continue
            for address in page.read(file).loads:
                with self.subTest(file.name):
                    self.assertNotRegex(address, r"^(https?:)?//")
                    self.assertTrue((file.parent / urldefrag(address)[0].split("?")[0]).exists(), address)
        for style in SITE.rglob("_static/*.css"):
            self.assertNotRegex(style.read_text(), r"url\(['\"]?(https?:)?//", style.name)

    def test_internal_ones_lead_somewhere(self):
        outside = set()
        for file in [SITE / "index.html", *(SITE / "decks").glob("*.html")]:
            for link in page.read(file).links:
                if link.startswith("https://"):
                    outside.add(link)
                    continue
                path, slide = urldefrag(link)
                target = (file.parent / path) if path else file
                with self.subTest(f"{file.name}: {link}"):
                    self.assertTrue(target.exists())
                    self.assertTrue(not slide or slide.strip("/") in page.read(target).ids)
        (OUTPUT / "external-links.txt").write_text("\n".join(sorted(outside)) + "\n")
        print(f"{len(outside)} external links are listed in {OUTPUT / 'external-links.txt'}")


class Commands(unittest.TestCase):
    def test_those_within_a_sentence_have_a_verb_that_exists(self):
        verbs = re.findall(r"^  ([a-z]+) +\w", (ROOT / "workbook").read_text().split("HELP")[1], re.M)
        text = "".join(file.read_text() for file in [SLIDES / "index.md", *(SLIDES / "decks").glob("*.md")])
        used = set(re.findall(r"\./workbook ([a-z]+)", text))
        self.assertGreaterEqual(len(used), 8)
        self.assertEqual(sorted(used - set(verbs)), [])

    def test_captured_ones_are_shown(self):
        text = "".join(file.read_text() for file in (SLIDES / "decks").glob("*.md"))
        shown = set(re.findall(r"\{captured\} (\w+)", text))
        self.assertEqual(shown, set(yaml.safe_load((SLIDES / "captures.yaml").read_text())))
        self.assertEqual(shown, {file.stem for file in (SLIDES / "captured").glob("*.txt")})


if __name__ == "__main__":
    unittest.main()
