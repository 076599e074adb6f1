"""Deck 0: the steps of the course, read from its chapters."""

import textwrap

import course_source
from figures.drawing import RANKS, Drawing


def steps():
    course = course_source.steps()
    d = Drawing(1180, 480)
    width = 1160 / len(course)
    rise = 296 / (len(course) - 1)
    for index, step in enumerate(course):
        x, height = 10 + index * width, 112 + index * rise
        d.box(x, 470 - height, width - 6, height, RANKS[index % 4])
        d.words(x + width / 2 - 3, 502 - height, step["name"][:2], 30, "#14171a", bold=True)
        todos = step["todos"]
        what = "read,\nrun" if not todos else f"TODO\n{todos[0]}" + (f"–{todos[-1]}" if len(todos) > 1 else "")
        d.words(x + width / 2 - 3, 546 - height, what, 21, "#14171a")
        # No wider than its stair: the next one is higher.
        name = textwrap.wrap(step["name"][3:].replace("_", " "), 10)
        d.words(x + width / 2 - 3, 464 - height - 12 * len(name), "\n".join(name), 17)
    return [d.step("", "Stairs, one for each step: " + ", ".join(step["name"] for step in course) + ".")]
