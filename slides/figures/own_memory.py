"""Deck 2: one program, several processes, and nothing shared."""

from figures.drawing import RANKS, VERMILION, Drawing

PLACES = [20 + rank * 290 for rank in range(4)]


def picture(caption, alt, values, sends=False):
    d = Drawing(1180, 340)
    for rank, x in enumerate(PLACES):
        d.box(x, 40, 270, 230, dashed=True, radius=12).words(x + 135, 70, f"process {rank}", 24, bold=True)
        d.box(x + 25, 100, 220, 62, "#3b4450").words(x + 135, 131, "train.cpp", 24, "#ffffff")
        d.box(x + 25, 180, 220, 62, RANKS[rank], values[rank], 24)
    if sends:
        d.curve(PLACES[0] + 135, 275, 300, 340, PLACES[1] + 135, 275, colour=VERMILION)
        d.words(300, 322, "send", 22)
    return d.step(caption, alt)


def steps():
    own = [f"x = {rank}" for rank in range(4)]
    return [
        picture("Every process runs the same program from its first line.", "Four processes run train.cpp.", [""] * 4),
        picture("Each has its own memory: x is a different variable in each.",
                "The variable x has another value in each of the four processes.", own),
        picture("A value of another process must be sent.", "Process 0 sends its x to process 1.",
                ["x = 0", "x = 1, got 0", "x = 2", "x = 3"], sends=True),
    ]
