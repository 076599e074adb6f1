"""Deck 2: reduce-scatter."""

from figures.collective import picture


def steps():
    before = [[(f"{name}{part}", rank) for part in "012"] for rank, name in enumerate("abc")]
    after = [[(f"a{part}+b{part}+c{part}", "all")] for part in "012"]
    return [picture("reduce_scatter", before, after,
                    "Reduce-scatter: every rank has three parts; afterwards rank 0 has the sum of the first "
                    "parts, rank 1 that of the second, rank 2 that of the third.")]
