"""Deck 7: column, then row: one all-reduce for both layers."""

from figures.drawing import GREY, YELLOW, Drawing, rank_colour


def steps():
    d = Drawing(1180, 340)
    d.box(20, 125, 110, 90, GREY, "X", 27)
    for rank in range(2):
        y = 30 + rank * 180
        d.words(190, y - 16, f"GPU {rank}", 22, anchor="start", bold=True)
        d.arrow(134, 170, 186, y + 50)
        for x, w, text in ((190, 190, f"· A{rank}"), (410, 150, "GELU"), (590, 190, f"· B{rank}")):
            d.box(x, y, w, 100, rank_colour(rank), text, 26)
        d.arrow(382, y + 50, 408, y + 50).arrow(562, y + 50, 588, y + 50).arrow(784, y + 50, 880, 170)
    d.box(884, 115, 150, 110, YELLOW, "all-reduce", 25, bold=True)
    d.arrow(1036, 170, 1076, 170)
    d.box(1080, 125, 90, 90, GREY, "Z", 27)
    return [d.step("", "X goes to both GPUs; each multiplies with its columns of A, applies GELU, multiplies with its rows "
                       "of B; one all-reduce gives Z on both.")]
