#!/usr/bin/env python3
"""style.py finds what is planted: small texts with one fault each, and lists of old sentences."""

import contextlib
import hashlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import style
import style_sources

BANNED = ("Mend: run it again.", "Two ranks, of which one waits.", "It failed for want of memory.", "It runs as given.",
          "The job came to its end.", "It begins anew.", "The loss is no number any more.",
          "Any rank, be it the first.", "It mends the file.", "The program stands still.", "It is no script.",
          "They take equally many steps.", "It does without a sum.", "Two in the place of one.", "It waits in vain.",
          "It waits for ever.", "It belongs into main().", "It reads all else.", "GCC 12 is the least.")
ACTIVE = "The rank reads its own part. "
PASSIVE = "The part is not read by a rank. "
LONG = "One rank " + "and one rank " * 10
CODE = f"""Run it:

```sh
{LONG}, anew
```

`{LONG}` and $x = {LONG}$ are short. [A link](https://anew.example/anew) as well. <!-- anew -->
"""
CATALOGUE = """- name: anew
  belief: The rank stays
    until it ends.
  edits:
    - replace: |2
        belief: begins anew
      with: ""
"""
TODO = f"""title: Begin
intro: >
  It
  ends anew.
text: |
  The rank begins.

    begin(anew);

  It reads
  its part anew.
hint: "{LONG}"
"""
HELP = """Begins a run.

Usage:
  ./workbook start anew

      --again N  Begin
                 anew (default: 1)
"""


def hash_of(sentence):
    return hashlib.sha256(sentence.encode()).hexdigest()[:8]


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "checker/tests").mkdir(parents=True)
        self.old = self.root / "checker/tests/style.old"

    def look(self, text, name="README.md", programs=(), update=False):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return style.look(self.root, list(programs), update)

    def program(self, name, help_text, help_of_verbs=""):
        program = self.root / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n"
                           f"if [ $# = 1 ]; then cat <<'A'\n{help_text}A\nelse cat <<'B'\n{help_of_verbs}B\nfi\n")
        program.chmod(0o755)
        return program

    def make_all_old(self, text):
        """Lists every sentence and the whole file, and lets the script keep what applies."""
        entries = ["README.md 100%"]
        for paragraph in style.paragraphs(style.of_markdown(text)):
            entries += [f"README.md {hash_of(' '.join(words))}" for _, words in style.sentences(paragraph.text)]
        self.old.write_text("\n".join(entries))
        self.assertEqual(self.look(text, update=True), [])
        return self.old.read_text().splitlines()


class Rules(Texts):
    def test_banned_words(self):
        self.assertEqual(len(BANNED), len(style.BANNED))
        for text, advice in zip(BANNED, style.BANNED.values()):
            with self.subTest(text):
                problems = self.look(f"# A title\n\nThe rank\nreads. {text}\n")
                self.assertEqual(len(problems), 1)
                self.assertRegex(problems[0], r"^README\.md:4: ")
                self.assertIn(advice, problems[0])
                self.assertTrue(problems[0].endswith(f" — {text}"))

    def test_long_sentences(self):
        self.assertEqual(self.look("word " * 30), [])
        self.assertIn("31 words", self.look("word " * 31)[0])
        self.assertEqual(self.look("word " * 20 + "end. " + "word " * 20), [])
        self.assertIn("32 words", self.look("$ONE " + "word " * 30 + "$TWO")[0], "variables of a shell are no formula")

    def test_passive_share(self):
        self.assertEqual(self.look(ACTIVE * 9 + PASSIVE), [])
        self.assertIn("20 % of sentences are passive", self.look(ACTIVE * 8 + PASSIVE * 2)[0])
        self.assertEqual(self.look(PASSIVE * 9), [], "too short for a share")
        fragments = "\n# Title\n\n- item\n" * 20
        self.assertIn("20 %", self.look(ACTIVE * 8 + PASSIVE * 2 + fragments)[0], "fragments do not count")

    def test_what_is_passive(self):
        for text in ("it is kept", "they aren't needed", "has been quickly written", "is to be trained"):
            self.assertRegex(text, style.PASSIVE)
        for text in ("it is red", "there is need", "it is in shared memory", "it is a used one", "it is, used"):
            self.assertNotRegex(text, style.PASSIVE)


class Extraction(Texts):
    def test_code_is_skipped(self):
        self.assertEqual(self.look(CODE), [])
        self.assertEqual(style.paragraphs(style.of_markdown("$$\nx + y = z\n$$\n\n(todo-1)=\n")), [])

    def test_tables_and_lists_are_taken_apart(self):
        half = "word " * 20
        table = f"| {half} | {half} |\n|---|---|\n| {half} | a |\n"
        self.assertEqual(self.look(f"# {half}\n{half}\n- {half}\n- {half}\n\n{table}"), [])
        self.assertIn("README.md:3", self.look("| a | b |\n|---|---|\n| a | begins anew |\n")[0])
        self.assertIn("README.md:1", self.look(":::{question} Does it begin anew?\nNo.\n:::\n")[0])

    def test_where_sentences_end(self):
        def ends(text):
            return [" ".join(words) for _, words in style.sentences(text)]
        for whole in ("Ports, e.g. 29500, i.e. one of A. Strube's.", "It needs 2.11.0, nodes 1, ... and site.conf."):
            self.assertEqual(ends(whole), [whole])
        self.assertEqual(ends('See TODO 9. "Why?" `x. y` ends.'), ["See TODO 9.", '"Why?"', "`x. y` ends."])

    def test_yaml(self):
        self.assertEqual(self.look(CATALOGUE, "checker/chapters/data_parallel/catalogue/wrong/01.yaml"), [])
        found = self.look(TODO, "checker/chapters/data_parallel/todos/01.yaml")
        self.assertEqual([problem.split(": ")[0][-5:] for problem in found], "aml:3 ml:10 ml:12".split())
        self.assertTrue(found[1].endswith("— It reads its part anew."))

    def test_messages(self):
        finding = "a: &same\n  what: It begins anew.\n  why: &why >\n    It ends anew.\n  evidence: &lines\n" \
            "    line: It stays anew.\n  says: 'anew.*'\n"
        found = self.look(finding, "checker/chapters/findings.yaml")
        self.assertEqual([problem.split("— ")[1] for problem in found],
                         ["It begins anew.", "It ends anew.", "It stays anew."])
        self.look("", "checker/chapters/findings.yaml")
        self.assertEqual(self.look(finding, "checker/chapters/chapter.yaml"), [], "nobody reads these there")

    def test_help(self):
        found = self.look("", programs=[self.program("bin/checker", "Usage:\n\n  start     begin\n", HELP)])
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("checker start --help:"), found)
        self.assertTrue(found[0].endswith("— Begin anew"), found)
        trainer = self.program("bin/trainer", "Usage:\n\n  laptop     begins anew\n")
        self.assertTrue(self.look("", programs=[trainer])[0].startswith("trainer --help:3: "))

    def test_verbs_share_their_passives(self):
        verbs = "".join(f"  {verb}     begin\n" for verb in ("start", "run", "watch", "check", "hint"))
        checker = self.program("bin/checker", verbs, f"{ACTIVE}\n\n{PASSIVE}\n")
        self.assertIn("checker --help: 50 % of sentences are passive", self.look("", programs=[checker])[0])


class Old(Texts):
    def test_old_sentences_pass_until_they_change(self):
        self.assertEqual(len(self.make_all_old("It begins anew. It ends. It ends anew.")), 2)
        self.assertEqual(self.look("It begins\nanew. It ends. It ends anew."), [], "wrapping is no change")
        self.assertIn("It starts anew.", self.look("It starts anew. It ends anew.")[0])
        self.assertIn("It begins anew.", self.look("It begins anew. It begins anew. It ends anew.")[0], "a copy is new")

    def test_the_list_only_shrinks(self):
        self.make_all_old("It begins anew. It ends anew.")
        self.assertIn("README.md no longer apply", self.look("It begins anew.")[0])
        self.assertEqual(len(self.look("It begins anew. It stays anew.", update=True)), 1)
        self.assertEqual(len(self.old.read_text().splitlines()), 1)
        self.assertIn("It stays anew.", self.look("It begins anew. It stays anew.")[0])

    def test_shares_only_fall(self):
        self.assertEqual(self.make_all_old(ACTIVE * 7 + PASSIVE * 3), ["README.md 30%"])
        self.assertIn("40 % of sentences are passive, 30 %", self.look(ACTIVE * 6 + PASSIVE * 4)[0])
        self.assertIn("no longer apply", self.look(ACTIVE * 8 + PASSIVE * 2)[0])
        self.assertEqual(self.look(ACTIVE * 8 + PASSIVE * 2, update=True), [])
        self.assertEqual(self.old.read_text(), "README.md 20%\n")
        self.assertIn("30 % of sentences are passive, 20 %", self.look(ACTIVE * 7 + PASSIVE * 3)[0])
        self.assertEqual(self.look(ACTIVE * 10, update=True), [])
        self.assertEqual(self.old.read_text(), "")

    def test_help_that_was_not_looked_at_stays_listed(self):
        self.old.write_text("checker run --help 12345678\n")
        self.assertEqual(self.look("", update=True), [])
        self.assertEqual(self.old.read_text(), "checker run --help 12345678\n")
        self.assertIn("no longer apply", self.look("", programs=[self.program("bin/checker", "")])[0])


class Exceptions(Texts):
    def test_a_marker_excuses_one_sentence(self):
        for text in ("It begins. It ends anew. <!-- style: quoted -->\n", "<!-- style: quoted -->\nIt ends anew.\n",
                     "<!-- style: quoted -->\n\n- It ends anew.\n", "| It ends anew <!-- style: quoted --> | b |\n"):
            with self.subTest(text):
                self.assertEqual(self.look(text), [])

    def test_so_does_one_in_yaml(self):
        for place in ("# style: quoted\ntitle: It ends anew", "title: It ends anew  # style: quoted",
                      "text: |  # style: quoted\n  It begins.\n  It ends anew.\n"):
            with self.subTest(place):
                self.assertEqual(self.look(place, "checker/chapters/data_parallel/todos/01.yaml"), [])

    def test_it_excuses_no_more(self):
        self.assertIn("It stays anew.", self.look("It ends anew. It stays anew. <!-- style: quoted -->")[0])
        self.assertIn("It ends anew.", self.look("It ends anew. <!-- style: -->")[0], "it must say why")

    def test_one_without_need_is_found(self):
        for text in ("It ends. <!-- style: quoted -->", "It ends.\n\n<!-- style: quoted -->\n"):
            self.assertIn("excuses nothing", self.look(text)[0])

    def test_ten_are_the_most(self):
        text = "It ends anew. <!-- style: quoted -->\n\n"
        self.assertEqual(self.look(text * 10), [])
        self.assertIn("11 exceptions", self.look(text * 11)[0])


class Sources(Texts):
    def look_at(self, source, name="checker/src/a.cpp"):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return style_sources.look(self.root)

    def test_comments_and_joined_strings(self):
        for source in ("// The rank\n// begins anew.\n", "int a;  // begins anew\n", 'say("It begins "\n    "anew.");\n'):
            with self.subTest(source):
                self.assertIn('"anew"', self.look_at(source)[0])
        self.assertEqual(self.look_at('int anew = 1;  // "a"\nchar c = \'"\';\n#include "anew/anew.hpp"\n'), [])
        self.assertEqual(self.look_at("// anew\n", "checker/src/tests/a.cpp"), [], "tests are not looked at")

    def test_public_headers_say_what_they_are_for(self):
        header = "distributed_utils/include/a.hpp"
        self.assertIn("what the header is for", self.look_at("#pragma once\n#include <map>\n", header)[0])
        self.assertEqual(self.look_at("#pragma once\n/// Maps.\n#include <map>\n", header), [])


class Program(Texts):
    def test_status_and_last_line(self):
        self.program("workbook", "")
        for text, status, last in (("It ends.", 0, "The texts are plain."), ("It ends anew.", 1, "Fix: ")):
            (self.root / "README.md").write_text(text)
            said = io.StringIO()
            with (mock.patch("style.ROOT", self.root), mock.patch("sys.argv", ["style.py"]),
                  contextlib.redirect_stdout(said)):
                self.assertEqual(style.main(), status)
            lines = said.getvalue().splitlines()
            self.assertIn("To include the checker", lines[0])
            self.assertTrue(lines[-1].startswith(last))

    def test_it_stays_small(self):
        self.assertLessEqual(len(Path(style.__file__).read_text().splitlines()), 220)


if __name__ == "__main__":
    unittest.main()
