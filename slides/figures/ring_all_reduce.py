"""Deck 2: the ring, step by step, on three ranks. The sums are computed as the ring computes them."""

from figures.drawing import Drawing, rank_colour

WORLD = 3
NAMES = "abc"


def draw(cells, caption, sending=None):
    """cells[rank][part]: the set of ranks whose number is in it. sending[rank]: the part it sends on."""
    d = Drawing(1180, 380)
    for rank in range(WORLD):
        x = 40 + rank * 385
        d.words(x + 150, 28, f"rank {rank}", 25, bold=True)
        for part in range(WORLD):
            y, inside = 60 + part * 84, cells[rank][part]
            text = "+".join(f"{NAMES[r]}{part}" for r in sorted(inside))
            complete = len(inside) == WORLD
            fill = "#F0E442" if complete else rank_colour(rank) if len(inside) == 1 else "#D7DCE1"
            d.box(x, y, 300, 72, fill, text, 25, bold=complete)
            if sending and sending[rank] == part:
                if rank < WORLD - 1:
                    d.arrow(x + 304, y + 36, x + 381, y + 36, 4)
                else:
                    d.arrow(x + 304, y + 36, 1176, y + 36, 4).arrow(2, y + 36, 36, y + 36, 4)
    words = "one number of each part, on each rank: " if not sending else ""
    alt = caption + " " + words + "; ".join(
        f"rank {rank} holds " + ", ".join("+".join(f"{NAMES[r]}{part}" for r in sorted(cells[rank][part]))
                                          for part in range(WORLD)) for rank in range(WORLD))
    return d.step(caption, alt)


def steps():
    cells = [[{rank} for _ in range(WORLD)] for rank in range(WORLD)]
    pictures = [draw(cells, "Each rank cuts its numbers into as many parts as there are ranks.")]
    for turn in range(2 * (WORLD - 1)):
        scatter = turn < WORLD - 1
        sent = [(rank - turn) % WORLD if scatter else (rank + 1 - (turn - WORLD + 1)) % WORLD for rank in range(WORLD)]
        name = "reduce-scatter" if scatter else "all-gather"
        verb = "adds what it gets" if scatter else "keeps what it gets"
        pictures.append(draw(cells, f"{name}, turn {turn % (WORLD - 1) + 1}: each sends one part to its right, and {verb}.", sent))
        new = [[set(part) for part in rank] for rank in cells]
        for rank in range(WORLD):
            to, part = (rank + 1) % WORLD, sent[rank]
            new[to][part] = new[to][part] | cells[rank][part] if scatter else set(cells[rank][part])
        cells = new
    assert all(len(part) == WORLD for rank in cells for part in rank)
    return pictures + [draw(cells, "2(W−1) turns, and every rank has every sum.")]
