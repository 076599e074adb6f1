"""What the pictures of the five collectives share: three ranks, before and after."""

from figures.drawing import Drawing, rank_colour

WIDTH = 300


def picture(name, before, after, alt):
    """before, after: for each rank a list of cells, pairs (text, rank that coloured it or None)."""
    d = Drawing(1180, 330)
    for side, (title, ranks) in enumerate((("before", before), ("after", after))):
        x = 130 + side * 580
        d.words(x, 22, title, 24, anchor="start")
        for rank, cells in enumerate(ranks):
            y = 50 + rank * 92
            if side == 0:
                d.words(112, y + 36, f"rank {rank}", 24, anchor="end")
            width = 400 / max(len(row) for row in before + after)
            width = max(width, 110)
            for index, (text, colour) in enumerate(cells):
                fill = None if colour is None else "#F0E442" if colour == "all" else rank_colour(colour)
                d.box(x + index * width, y, width - 8, 72, fill, text, 25, dashed=colour is None)
    d.arrow(560, 185, 690, 185, 4).words(625, 155, name, 22)
    return d.step("", alt)
