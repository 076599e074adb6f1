"""Deck 2: broadcast."""

from figures.collective import picture


def steps():
    return [picture("broadcast", [[("a", 0)], [("", None)], [("", None)]], [[("a", 0)], [("a", 0)], [("a", 0)]],
                    "Broadcast: rank 0 has a; afterwards all ranks have a.")]
