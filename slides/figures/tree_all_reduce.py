"""Deck 2: the tree, step by step, on eight ranks."""

from figures.drawing import GREY, YELLOW, Drawing, rank_colour

WORLD = 8


def draw(holds, edges, caption):
    """holds[rank]: how many ranks' numbers are in its sum."""
    d = Drawing(1180, 330)
    x = lambda rank: 75 + rank * 147
    for rank in range(WORLD):
        full = holds[rank] == WORLD
        d.box(x(rank) - 52, 190, 104, 80, YELLOW if full else rank_colour(0) if holds[rank] == 1 else GREY,
              f"{holds[rank]} of {WORLD}", 24, bold=full)
        d.words(x(rank), 298, f"rank {rank}", 22)
    for source, target in edges:
        middle = (x(source) + x(target)) / 2
        d.curve(x(source), 186, middle, 186 - 60 - abs(source - target) * 24, x(target), 186)
    return d.step(caption, caption + " Numbers summed up: "
                  + ", ".join(f"rank {r} {holds[r]} of {WORLD}" for r in range(WORLD)) + ".")


def steps():
    holds = [1] * WORLD
    pictures = [draw(holds, [], "Eight ranks, each with its own number.")]
    distances = (1, 2, 4)
    for turn, distance in enumerate(distances):
        edges = [(rank + distance, rank) for rank in range(0, WORLD, 2 * distance)]
        for source, target in edges:
            holds[target] += holds[source]
        pictures.append(draw(holds, edges, f"Up, turn {turn + 1}: pairs add up."))
    for turn, distance in enumerate(reversed(distances)):
        edges = [(rank, rank + distance) for rank in range(0, WORLD, 2 * distance)]
        for source, target in edges:
            holds[target] = holds[source]
        pictures.append(draw(holds, edges, f"Down, turn {turn + 1}: the sum comes back."))
    return pictures
