"""Deck 9: two nodes with two ranks each, and who prepares the data on each node's own disk."""

from figures.drawing import GREEN, SKY, VERMILION, YELLOW, Drawing


def picture(caption, bars, alt):
    """bars: for each rank a list of (text, colour or None, width), in time."""
    d = Drawing(1180, 400)
    for rank, events in enumerate(bars):
        y = 20 + rank * 84 + (rank // 2) * 36
        if rank % 2 == 0:
            d.words(10, y + 74, f"node {rank // 2}", 23, anchor="start", bold=True)
        d.words(240, y + 32, f"rank {rank}", 23, anchor="end")
        x = 256
        for text, colour, width in events:
            d.box(x, y, width, 64, colour, text, 21, dashed=colour is None)
            x += width + 6
    return d.step(caption, alt)


def steps():
    prepares, finds, trains = ("prepares", SKY, 420), ("finds", YELLOW, 150), ("trains", GREEN, 300)
    waits = ("waits", None, 420)
    return [
        picture("Unchanged: no rank finds files, and all write the same ones.",
                [[("prepares", VERMILION, 420), trains]] * 4,
                "All four ranks prepare at the same time."),
        picture("Rank 0 only: the second node's disk is still empty.",
                [[prepares, finds, trains], [waits, finds, trains],
                 [waits, ("prepares", VERMILION, 420), trains], [waits, ("prepares", VERMILION, 420), trains]],
                "Rank 0 prepares, rank 1 finds the files; on the other node ranks 2 and 3 both prepare."),
        picture("rank0_first: one rank of each node prepares, the others find.",
                [[prepares, waits[:2] + (150,), trains], [waits, finds, trains]] * 2,
                "On each node the first rank prepares; then the second one finds the files."),
    ]
