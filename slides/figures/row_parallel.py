"""Deck 7: a linear layer cut by rows."""

from figures.drawing import YELLOW, rank_colour
from figures.matrix import Drawing, matrix, sign


def whole():
    d = Drawing(1180, 330)
    matrix(d, 100, 90, 260, 160, "Y", columns=2)
    sign(d, 405, 170, "·")
    matrix(d, 450, 50, 200, 240, "B", rows=2)
    sign(d, 700, 170, "=")
    matrix(d, 750, 90, 200, 160, "Z", colour=YELLOW)
    return d.step("Cut B by rows, and Y by columns to match.", "Y times B gives Z; Y is cut by columns, B by rows.")


def split():
    d = Drawing(1180, 330)
    for rank in range(2):
        y = 15 + rank * 160
        d.words(110, y + 65, f"GPU {rank}", 25, anchor="end", bold=True)
        d.box(140, y + 15, 130, 110, rank_colour(rank), f"Y{rank}", 26)
        sign(d, 310, y + 70, "·")
        d.box(350, y + 20, 200, 100, rank_colour(rank), f"B{rank}", 26)
        sign(d, 600, y + 70, "=")
        d.box(650, y + 15, 200, 110, rank_colour(rank), "a part\nof the sum", 24)
        d.arrow(856, y + 70, 930, 165)
    d.box(940, 110, 220, 110, YELLOW, "Z", 28, bold=True)
    d.words(1050, 70, "all-reduce", 25)
    return d.step("Each GPU has one term of Z: one all-reduce adds them up.",
                  "GPU 0 computes Y0 times B0, GPU 1 Y1 times B1; an all-reduce adds both to Z.")


def steps():
    return [whole(), split()]
