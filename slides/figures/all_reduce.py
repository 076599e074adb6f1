"""Deck 2: all-reduce."""

from figures.collective import picture


def steps():
    return [picture("all_reduce", [[("a", 0)], [("b", 1)], [("c", 2)]], [[("a+b+c", "all")]] * 3,
                    "All-reduce: the ranks have a, b and c; afterwards every rank has the sum.")]
