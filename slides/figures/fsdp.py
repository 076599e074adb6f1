"""Deck 7: one layer under FSDP on four ranks."""

from figures.drawing import GREY, YELLOW, Drawing, rank_colour

WORLD = 4


def picture(caption, weights, gradients, arrows=""):
    """weights, gradients: for each rank the parts it holds, or None."""
    d = Drawing(1180, 400)
    for rank in range(WORLD):
        x = 20 + rank * 290
        d.box(x, 40, 270, 330, dashed=True, radius=12).words(x + 135, 20, f"rank {rank}", 24, bold=True)
        for y, name, parts in ((95, "weights", weights), (240, "gradients", gradients)):
            if parts is None:
                continue
            d.words(x + 135, y - 18, name, 21)
            for part in range(WORLD):
                held = parts[rank].get(part)
                d.box(x + 16 + part * 60, y, 56, 80, held, "" if held is None else str(part), 24, dashed=held is None)
        if arrows and rank < WORLD - 1:
            y = 135 if arrows == "weights" else 280
            d.arrow(x + 258, y, x + 306, y, 4).arrow(x + 306, y, x + 258, y, 4)
    return d.step(caption, caption + " Four ranks, each layer cut into four parts.")


def steps():
    own = [{rank: rank_colour(rank)} for rank in range(WORLD)]
    whole = [{part: rank_colour(part) for part in range(WORLD)}] * WORLD
    local = [{part: GREY for part in range(WORLD)}] * WORLD
    mean = [{rank: YELLOW} for rank in range(WORLD)]
    return [
        picture("At rest each rank holds a quarter of the layer.", own, None),
        picture("Before forward: all-gather, and each has the whole layer.", whole, None, "weights"),
        picture("Forward is done: the others' quarters are freed.", own, None),
        picture("Before backward: all-gather once more.", whole, None, "weights"),
        picture("Backward gives each rank gradients for the whole layer.", whole, local),
        picture("Reduce-scatter: each keeps the mean of its own quarter.", own, mean, "gradients"),
        picture("The optimizer works on its quarter alone.", own, None),
    ]
