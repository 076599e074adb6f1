"""Deck 2: all-gather."""

from figures.collective import picture


def steps():
    all_of_them = [("a", 0), ("b", 1), ("c", 2)]
    return [picture("all_gather", [[("a", 0)], [("b", 1)], [("c", 2)]], [all_of_them] * 3,
                    "All-gather: the ranks have a, b and c; afterwards every rank has all three, side by side.")]
