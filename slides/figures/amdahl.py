"""Deck 1: what the part that does not share costs. Computed from Amdahl's formula, not measured."""

from figures.drawing import GREEN, ORANGE, SKY, Drawing


def steps():
    d = Drawing(1180, 460)
    left, bottom, top, right = 110, 380, 30, 900
    d.line(left, bottom, right, bottom).line(left, bottom, left, top)
    ranks = (1, 4, 8, 16, 32, 64)
    x = lambda n: left + (right - left) * n / 64
    y = lambda speed_up: bottom - (bottom - top) * speed_up / 64
    for n in ranks[1:]:
        d.words(x(n), bottom + 24, n, 20)
    for speed_up in (16, 32, 48, 64):
        d.words(left - 28, y(speed_up), speed_up, 20).line(left - 6, y(speed_up), left, y(speed_up))
    d.words((left + right) / 2, bottom + 55, "ranks", 22).words(left + 10, top - 14, "times as fast", 22, anchor="start")
    for serial, colour, name in ((0.0, GREEN, "shares everything"), (0.02, SKY, "2 % does not share"),
                                 (0.1, ORANGE, "10 % does not share")):
        points = [(x(n), y(1 / (serial + (1 - serial) / n))) for n in range(1, 65)]
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            d.line(x1, y1, x2, y2, 5, colour=colour)
        d.words(right + 14, points[-1][1], name, 23, anchor="start")
    return [d.step("", "Speed-up over ranks by Amdahl's formula: with 2 percent of the work not shared, 64 ranks "
                       "are 28 times as fast; with 10 percent, 9 times.")]
