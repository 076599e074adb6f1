"""Deck 7: a linear layer cut by columns."""

from figures.drawing import GREY, rank_colour
from figures.matrix import Drawing, matrix, sign


def whole():
    d = Drawing(1180, 330)
    matrix(d, 100, 90, 200, 160, "X", colour=GREY)
    sign(d, 345, 170, "·")
    matrix(d, 390, 60, 260, 220, "A", columns=2)
    sign(d, 700, 170, "=")
    matrix(d, 750, 90, 260, 160, "Y", columns=2)
    return d.step("Cut A by columns: each GPU makes some columns of Y.", "X times A gives Y; A and Y are cut into two halves by columns.")


def split():
    d = Drawing(1180, 330)
    for rank in range(2):
        y = 15 + rank * 160
        d.words(110, y + 65, f"GPU {rank}", 25, anchor="end", bold=True)
        d.box(140, y + 15, 200, 110, GREY, "X", 26)
        sign(d, 380, y + 70, "·")
        d.box(420, y, 130, 140, rank_colour(rank), f"A{rank}", 26)
        sign(d, 600, y + 70, "=")
        d.box(650, y + 15, 130, 110, rank_colour(rank), f"Y{rank}", 26)
    d.words(980, 150, "forward: nothing to send\nbackward: all-reduce\nof the gradient of X", 24)
    return d.step("Every GPU needs all of X; none needs the others' columns.",
                  "GPU 0 computes X times A0, GPU 1 computes X times A1.")


def steps():
    return [whole(), split()]
