"""Deck 11: what each of three ranks reads of a model that four ranks saved, from data/sharded_load.csv."""

from figures.data import rows
from figures.drawing import Drawing, rank_colour

LEFT, WIDTH, HEIGHT = 190, 960, 70
SAVED, LOADED = 50, 250


def needed():
    """By (reader, writer): elements."""
    return {(int(row["reader"]), int(row["writer"])): int(row["elements"]) for row in rows("sharded_load")}


def bars(needed, index):
    """Of each reader or writer: where its part begins and ends, as a share of the model."""
    total, at, found = sum(needed.values()), 0, {}
    for rank in sorted({key[index] for key in needed}):
        size = sum(count for key, count in needed.items() if key[index] == rank)
        found[rank] = at / total, (at + size) / total
        at += size
    return found


def picture(caption, readers):
    counts = needed()
    writers, takers = bars(counts, 1), bars(counts, 0)
    d = Drawing(1180, 364)
    d.words(LEFT - 16, SAVED + HEIGHT / 2, "saved by\nfour ranks", 21, anchor="end")
    d.words(LEFT - 16, LOADED + HEIGHT / 2, "loaded by\nthree ranks", 21, anchor="end")
    for rank, (begin, end) in writers.items():
        d.box(LEFT + begin * WIDTH, SAVED, (end - begin) * WIDTH, HEIGHT, rank_colour(rank), f"file of rank {rank}", 20)
    said = []
    for rank in readers:
        begin, end = takers[rank]
        at = begin
        for writer in writers:
            share = counts[rank, writer] / sum(counts.values())
            if share == 0:
                continue
            d.box(LEFT + at * WIDTH, LOADED, share * WIDTH, HEIGHT, rank_colour(writer), radius=0)
            d.arrow(LEFT + (at + share / 2) * WIDTH, SAVED + HEIGHT + 4, LEFT + (at + share / 2) * WIDTH, LOADED - 6)
            d.words(LEFT + (at + share / 2) * WIDTH + 10, (SAVED + HEIGHT + LOADED) / 2,
                    f"{counts[rank, writer] / 1000:.0f} k", 20, anchor="start")
            said.append(f"rank {rank} reads {counts[rank, writer]} elements of the file of rank {writer}")
            at += share
        d.box(LEFT + begin * WIDTH, LOADED, (end - begin) * WIDTH, HEIGHT)
        d.words(LEFT + (begin + end) / 2 * WIDTH, LOADED + HEIGHT + 22, f"rank {rank}", 21)
    return d.step(caption, f"{caption} {'; '.join(said)}.")


def steps():
    return [
        picture("Four files, each with a quarter of the model.", []),
        picture("Rank 0 of three needs the first file, and a third of the second.", [0]),
        picture("Rank 1 needs two thirds of two files.", [0, 1]),
        picture("Each element is read from the one file that holds it. No rank sends parameters.", [0, 1, 2]),
    ]
