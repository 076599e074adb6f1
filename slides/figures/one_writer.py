"""Deck 11: one rank writes the model for all, or each writes its part. Drawn, not measured."""

from figures.drawing import GREY, INK, Drawing, rank_colour

RANKS, LEFT, PART, ROW = 4, 130, 240, 62


def axis(d):
    d.arrow(LEFT, 300, 1150, 300).words(1110, 330, "time", 21)
    for rank in range(RANKS):
        d.words(LEFT - 20, 50 + rank * ROW, f"rank {rank}", 22, anchor="end")


def by_one():
    d = Drawing(1180, 350)
    axis(d)
    for part in range(RANKS):
        d.box(LEFT + part * PART, 26, PART - 6, 48, rank_colour(part), f"writes part {part}", 20)
    for rank in range(1, RANKS):
        y = 26 + rank * ROW
        d.box(LEFT, y, rank * PART - 46, 48, GREY, "waits", 20)
        d.box(LEFT + rank * PART - 40, y, 76, 48, rank_colour(rank), "sends", 20)
        d.box(LEFT + rank * PART + 42, y, (RANKS - rank) * PART - 48, 48, GREY)
        d.words(LEFT + RANKS * PART - 104, y + 24, "waits", 20, INK)
        d.arrow(LEFT + rank * PART - 2, y, LEFT + rank * PART - 2, 78, 2.2)
    return d.step("save0(): the parts go to rank 0, and it writes one after the other.",
                  "Rank 0 writes four parts one after the other. Each other rank sends its part when it is due, "
                  "and waits before and after.")


def by_all():
    d = Drawing(1180, 350)
    axis(d)
    for rank in range(RANKS):
        d.box(LEFT, 26 + rank * ROW, PART - 6, 48, rank_colour(rank), f"writes part {rank}", 20)
        d.box(LEFT + PART, 26 + rank * ROW, 3 * PART - 6, 48, None, "trains on", 20, dashed=True)
    return d.step("save_sharded_model(): each rank writes its part, and trains on.",
                  "All four ranks write their parts at the same time, in a quarter of the time, and then train on.")


def steps():
    return [by_one(), by_all()]
