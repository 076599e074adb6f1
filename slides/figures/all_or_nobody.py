"""Deck 2: a collective ends when all ranks have called it."""

from figures.drawing import GREEN, ORANGE, VERMILION, Drawing

COMPUTES = (210, 470, 330)  # until each rank calls


def picture(caption, alt, absent=None):
    d = Drawing(1180, 330)
    last = max(COMPUTES)
    for rank, computed in enumerate(COMPUTES):
        y = 30 + rank * 95
        d.words(120, y + 32, f"rank {rank}", 24, anchor="end")
        if rank == absent:
            d.box(140, y, 900, 64, GREEN, "computes, and never calls", 23)
            continue
        d.box(140, y, computed - 6, 64, GREEN, "computes", 23)
        if absent is not None:
            d.box(140 + computed, y, 900 - computed, 64, VERMILION, "waits", 23)
            continue
        if computed < last:
            d.box(140 + computed, y, last - computed - 6, 64, VERMILION, "waits", 23)
        d.box(140 + last, y, 200, 64, ORANGE, "all_reduce", 23)
        d.box(346 + last, y, 220, 64, GREEN, "computes", 23)
    return d.step(caption, alt)


def steps():
    return [
        picture("All ranks wait for the last one. Then the collective runs on all of them.",
                "Ranks 0 and 2 call early and wait for rank 1. All run the all_reduce at the same time."),
        picture("One rank does not call: the others wait forever.",
                "Rank 1 never calls the all_reduce, so ranks 0 and 2 wait.", absent=1),
    ]
