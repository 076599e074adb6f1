"""Deck 3: eleven samples dealt out to three ranks, in the four ways of the options."""

from figures.drawing import Drawing, rank_colour

SAMPLES, WORLD = 11, 3
ORDER = [7, 2, 9, 0, 5, 10, 3, 8, 1, 6, 4]  # one shuffled order of them


def row(d, x, y, cells, size=62):
    for index, (sample, rank, extra) in enumerate(cells):
        fill = None if rank is None else rank_colour(rank)
        d.box(x + index * (size + 6), y, size, 54, fill, sample, 25, dashed=rank is None, bold=extra)


def picture(caption, dealt, alt, show_ranks=True):
    """dealt: triples (sample, rank or None, repeated?) in the order of the deck of cards."""
    d = Drawing(1180, 400)
    d.words(232, 62, "the common order", 23, anchor="end")
    row(d, 250, 35, dealt)
    if show_ranks:
        for rank in range(WORLD):
            y = 140 + rank * 80
            d.words(232, y + 27, f"rank {rank} takes", 23, anchor="end")
            row(d, 250, y, [card for card in dealt if card[1] == rank])
    return d.step(caption, alt)


def steps():
    dealt = [(sample, index % WORLD, False) for index, sample in enumerate(ORDER)]
    missing = -len(ORDER) % WORLD
    padded = dealt + [(ORDER[i], (len(ORDER) + i) % WORLD, True) for i in range(missing)]
    kept = len(ORDER) // WORLD * WORLD
    dropped = dealt[:kept] + [(sample, None, False) for sample in ORDER[kept:]]
    return [
        picture("All ranks shuffle with one seed: one order.", [(s, None, False) for s in ORDER],
                "Eleven samples in one shuffled order.", False),
        picture("Rank r takes every third, from place r on.", dealt,
                "The samples dealt out like cards: ranks 0 and 1 get four, rank 2 three."),
        picture(f"Padding repeats {missing} sample: the shares are equal.", padded,
                "With padding the first sample is repeated at the end, so that each rank has four."),
        picture("drop_last leaves the tail out: equal, and no repeats.", dropped,
                "With drop_last the last two samples are left out, so that each rank has three."),
        picture(".pad = false: shares may differ by one, each sample counts once.", dealt,
                "Without padding ranks 0 and 1 have four samples and rank 2 has three."),
    ]
