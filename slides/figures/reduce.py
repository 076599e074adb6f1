"""Deck 2: reduce."""

from figures.collective import picture


def steps():
    return [picture("reduce", [[("a", 0)], [("b", 1)], [("c", 2)]], [[("a+b+c", "all")], [("", None)], [("", None)]],
                    "Reduce: the ranks have a, b and c; afterwards rank 0 has their sum.")]
