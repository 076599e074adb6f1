"""Deck 9: the schedule of signals on one, two and four ranks, by its formula. Computed, not measured:
750 steps of one rank see as many samples as 375 of two and 187 of four."""

from math import cos, pi, sqrt

from figures.drawing import GREEN, ORANGE, SKY, Drawing

BASE, WARM_UP, STEPS = 5e-3, 20, 750


def rate(world, step, total):
    """min((x + 1) / warm_up, (1 + cos(pi x / total)) / 2), times the base's rate and sqrt(world)."""
    return BASE * sqrt(world) * min((step + 1) / WARM_UP, (1 + cos(pi * step / total)) / 2)


def steps():
    d = Drawing(1180, 430)
    left, right, top, bottom = 130, 790, 20, 350
    x = lambda share: left + (right - left) * share
    y = lambda value: bottom - (bottom - top) * value / 0.011
    d.line(left, bottom, right, bottom).line(left, bottom, left, top)
    for value in (0.005, 0.01):
        d.line(left - 6, y(value), left, y(value)).words(left - 12, y(value), f"{value:g}", 20, anchor="end")
    for line, (world, colour) in enumerate(((1, ORANGE), (2, SKY), (4, GREEN))):
        total = STEPS // world
        points = [(x(step / total), y(rate(world, step, total))) for step in range(0, total, max(1, 2 // world))]
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            d.line(x1, y1, x2, y2, 4, colour=colour)
        factor = "" if world == 1 else f", times {sqrt(world):.3g}"
        d.box(815, 60 + line * 44, 26, 26, colour).words(
            853, 73 + line * 44, f"{world} rank{'s' if world > 1 else ''}: {total} steps{factor}", 21, anchor="start")
    d.words((left + right) / 2, bottom + 34, "samples seen", 22)
    d.words(left + 8, top, "learning rate", 22, anchor="start")
    return [d.step("By the formula: warm-up, then half a cosine; the factor stretches all of it.",
                   "Learning rate over samples seen on one, two and four ranks: the same shape, 1, 1.41 and 2 times as high.")]
