"""Deck 4: decentralised SGD, in which a rank averages with its neighbours alone."""

import math

from figures.drawing import GREY, INK, RANKS, VERMILION, Drawing

COUNT = 6


def place(rank):
    angle = 2 * math.pi * rank / COUNT - math.pi / 2
    return 590 + 330 * math.cos(angle), 190 + 140 * math.sin(angle)


def pairs(apart):
    return [(rank, (rank + step) % COUNT) for step in range(1, apart + 1) for rank in range(COUNT)]


def picture(caption, alt, links, weights):
    d = Drawing(1180, 390)
    for one, other in links:
        d.line(*place(one), *place(other), 3, colour=VERMILION)
    for rank in range(COUNT):
        x, y = place(rank)
        d.box(x - 80, y - 36, 160, 72, RANKS[rank % 4] if weights else GREY, "")
        d.words(x, y, f"rank {rank}\n" + (f"weights {chr(97 + rank)}" if weights else "weights a"), 21, INK)
    return d.step(caption, alt)


def steps():
    return [
        picture("DistributedDataParallel: every rank averages with all. The weights stay equal.",
                "Six ranks, each linked with all others; all have the same weights.", pairs(3), weights=False),
        picture("Decentralised: each averages with two neighbours. Fewer messages, different weights.",
                "Six ranks in a ring, each linked with two neighbours; their weights differ.", pairs(1), weights=True),
    ]
