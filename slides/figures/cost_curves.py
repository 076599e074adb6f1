"""Deck 2: ring and tree by their formulas. Computed, for numbers that the slide names; not measured."""

from math import log2, log10

from figures.drawing import ORANGE, SKY, Drawing

LATENCY, BANDWIDTH, WORLD = 5e-6, 50e9, 64  # seconds, bytes a second, ranks


def ring(size):
    return 2 * (WORLD - 1) * (LATENCY + size / WORLD / BANDWIDTH)


def tree(size):
    return 2 * log2(WORLD) * (LATENCY + size / BANDWIDTH)


def steps():
    d = Drawing(1180, 430)
    left, right, top, bottom = 130, 850, 30, 350
    x = lambda size: left + (right - left) * (log10(size) - 3) / 6
    y = lambda seconds: bottom - (bottom - top) * (log10(seconds) + 5) / 5
    d.line(left, bottom, right, bottom).line(left, bottom, left, top)
    for power, name in ((3, "1 KB"), (5, "100 KB"), (7, "10 MB"), (9, "1 GB")):
        d.words(x(10**power), bottom + 24, name, 20)
    for power, name in ((-5, "10 µs"), (-3, "1 ms"), (-1, "100 ms")):
        d.words(left - 12, y(10.0**power) - 8, name, 20, anchor="end")
    for cost, colour, name in ((ring, ORANGE, "ring"), (tree, SKY, "tree")):
        points = [(x(10 ** (3 + i / 10)), y(cost(10 ** (3 + i / 10)))) for i in range(61)]
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            d.line(x1, y1, x2, y2, 5, colour=colour)
        d.words(right + 14, points[-1][1], name, 26, anchor="start", bold=True)
    d.words((left + right) / 2, bottom + 60, "size of the tensor", 22)
    return [d.step("From the formulas: 64 ranks, α = 5 µs, β = 1 / (50 GB/s).",
                   "Time over size for 64 ranks, by the formulas: the tree is faster below about a megabyte, "
                   "the ring above.")]
