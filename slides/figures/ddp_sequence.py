"""Deck 4: what happens in one step of DistributedDataParallel, on three ranks."""

from figures.drawing import GREY, YELLOW, Drawing, rank_colour

WORLD = 3


def picture(caption, model, batch="", gradient="", exchange=False, broadcast=False):
    d = Drawing(1180, 430)
    for rank in range(WORLD):
        x = 40 + rank * 385
        d.box(x, 40, 310, 360, dashed=True, radius=12).words(x + 155, 22, f"rank {rank}", 25, bold=True)
        text, same = model(rank)
        d.box(x + 30, 65, 250, 90, GREY if same else rank_colour(rank), text, 26)
        if batch:
            d.box(x + 30, 180, 250, 76, rank_colour(rank), batch.format(rank=rank), 25)
        if gradient:
            mean = "mean" in gradient
            d.box(x + 30, 290, 250, 86, YELLOW if mean else rank_colour(rank), gradient.format(rank=rank), 25)
        level = 333 if exchange else 110
        if (exchange or broadcast) and rank < WORLD - 1:
            d.arrow(x + 284, level, x + 411, level, 4)
            if exchange:
                d.arrow(x + 411, level, x + 284, level, 4)
    return d.step(caption, caption + " Three ranks side by side.")


def steps():
    own = lambda rank: (f"weights {'xyz'[rank]}", False)
    same = lambda rank: ("weights w", True)
    new = lambda rank: ("weights w′", True)
    return [
        picture("Each rank makes a model; their weights may differ.", own),
        picture("The wrapper copies rank 0's weights to all: replicas.", same, broadcast=True),
        picture("Each rank takes a batch of its own share.", same, "batch of rank {rank}"),
        picture("Forward and backward: each has a gradient of its own.", same, "batch of rank {rank}", "gradient {rank}"),
        picture("All-reduce: the gradients of all ranks are averaged.", same, "batch of rank {rank}", "gradient {rank}", exchange=True),
        picture("Every rank now has the same gradient.", same, "batch of rank {rank}", "mean gradient"),
        picture("Every optimizer takes the same step: still replicas.", new, "", ""),
    ]
