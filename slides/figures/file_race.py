"""Deck 5: two ranks write one file."""

from figures.drawing import Drawing, rank_colour


def steps():
    d = Drawing(1180, 320)
    for rank in range(2):
        y = 40 + rank * 90
        d.words(110, y + 30, f"rank {rank}", 25, anchor="end")
        for part in range(4):
            d.box(130 + part * 150 + rank * 70, y, 130, 60, rank_colour(rank), f"writes {part + 1}/4", 22)
    d.arrow(860, 110, 930, 110, 4)
    d.words(1050, 30, "model-best.pt", 24, bold=True)
    for part, rank in enumerate((0, 1, 1, 0)):
        d.box(950, 55 + part * 48, 200, 44, rank_colour(rank), f"part {part + 1}: rank {rank}", 21)
    d.words(440, 270, "the same name, at the same time", 24)
    d.words(1050, 275, "of neither rank", 24)
    return [d.step("", "Ranks 0 and 1 write a file of the same name at the same time, part by part; what is left is "
                       "a mixture of both.")]
