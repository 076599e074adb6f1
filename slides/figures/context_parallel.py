"""Deck 7: a long sequence cut into parts; keys and values go round."""

from figures.drawing import Drawing, rank_colour

WORLD = 4


def picture(turn, caption):
    d = Drawing(1180, 330)
    for rank in range(WORLD):
        x, other = 30 + rank * 290, (rank - turn) % WORLD
        d.words(x + 125, 18, f"GPU {rank}", 24, bold=True)
        d.box(x, 45, 250, 80, rank_colour(rank), f"queries, part {rank}", 23)
        d.box(x, 165, 250, 80, rank_colour(other), f"keys, values, part {other}", 22)
        d.line(x + 125, 128, x + 125, 162, 3)
        if rank < WORLD - 1:
            d.arrow(x + 252, 205, x + 288, 205, 4)
    d.curve(1025, 250, 590, 340, 160, 252)
    return d.step(caption, caption + " " + "; ".join(
        f"GPU {rank}: queries {rank} with keys {(rank - turn) % WORLD}" for rank in range(WORLD)) + ".")


def steps():
    return [picture(0, "Each GPU has a part of the sequence."),
            picture(1, "Keys and values move one GPU on, while attention is computed."),
            picture(3, "The last turn: all queries have met all keys and values.")]
