"""Deck 5: how one collective too few becomes a deadlock."""

from figures.drawing import GREEN, ORANGE, SKY, VERMILION, Drawing


def picture(caption, ranks, alt):
    """ranks: for each a list of (text, colour), in time."""
    d = Drawing(1180, 280)
    for rank, events in enumerate(ranks):
        y, x = 40 + rank * 110, 140
        d.words(120, y + 35, f"rank {rank}", 25, anchor="end")
        for text, colour, width in events:
            d.box(x, y, width, 70, colour, text, 23, dashed=colour is None)
            x += width + 6
    return d.step(caption, alt)


def steps():
    start = [("setup", SKY, 120), ("train", GREEN, 200)]
    return [
        picture("Correct: every rank calls the same collectives.",
                [start + [("all_reduce", ORANGE, 190), ("evaluate", GREEN, 190), ("all_reduce", ORANGE, 190)]] * 2,
                "Both ranks: setup, train, all_reduce, evaluate, all_reduce."),
        picture("if (rank == 0) all_reduce(…): rank 0 waits for a rank that never calls it.",
                [start + [("all_reduce: waits …", VERMILION, 590)], start + [("evaluate", GREEN, 190)]],
                "Rank 0 waits in all_reduce while rank 1 evaluates."),
        picture("Then the ranks meet in two calls that do not match.",
                [start + [("all_reduce 1: waits …", VERMILION, 590)],
                 start + [("evaluate", GREEN, 190), ("all_reduce 1, meant as 2", VERMILION, 394)]],
                "Rank 0's first all_reduce meets the one that rank 1 means for the evaluation: wrong numbers."),
        picture("At the end one rank waits for a call that never comes.",
                [start + [("all_reduce 1", ORANGE, 190), ("evaluate", GREEN, 190), ("all_reduce 2: waits", VERMILION, 240)],
                 start + [("evaluate", GREEN, 190), ("all_reduce 1", ORANGE, 190), ("has ended", None, 240)]],
                "Rank 0 waits in its second all_reduce; rank 1 has ended."),
    ]
