"""Deck 0: the steps of the course, read from its chapters."""

import course_source
from figures.drawing import RANKS, Drawing


def steps():
    course = course_source.steps()
    d = Drawing(1180, 480)
    width = 1160 / len(course)
    rise = 302 / (len(course) - 1)
    for index, step in enumerate(course):
        x, height = 10 + index * width, 112 + index * rise
        d.box(x, 470 - height, width - 6, height, RANKS[index % 4])
        d.words(x + width / 2 - 3, 502 - height, step["name"][:2], 30, "#14171a", bold=True)
        todos = step["todos"]
        what = "read,\nrun" if not todos else f"TODO\n{todos[0]}" + (f"–{todos[-1]}" if len(todos) > 1 else "")
        d.words(x + width / 2 - 3, 546 - height, what, 21, "#14171a")
        d.words(x + width / 2 - 3, 452 - height, step["name"][3:].replace("_", " "), 21)
    return [d.step("", "Stairs, one for each step: " + ", ".join(step["name"] for step in course) + ".")]
