"""Deck 8: equal steps from two places: averaged gradients alone bring no models together. A sketch in two weights;
the paths are computed, with equal steps on both ranks."""

from figures.drawing import GREY, Drawing, rank_colour

STARTS = ((150, 110), (330, 290))
STEPS = ((190, -38), (170, 30), (160, -16), (150, 22))  # the same on both ranks, because the gradients are averages


def path(start):
    points = [start]
    for dx, dy in STEPS:
        points.append((points[-1][0] + dx, points[-1][1] + dy))
    return points


def picture(caption, starts):
    d = Drawing(1180, 400)
    d.line(60, 380, 1150, 380).line(60, 380, 60, 20)
    d.words(1080, 350, "one weight", 21).words(150, 30, "another", 21)
    for rank, start in enumerate(starts):
        points = path(start)
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            d.arrow(x1, y1, x2, y2, 3, rank_colour(rank) if len(starts) > 1 else GREY)
        name = f"rank {rank}" if len(starts) > 1 else "all ranks"
        d.words(start[0], start[1] - 26, name, 23, bold=True)
        d.box(start[0] - 9, start[1] - 9, 18, 18, rank_colour(rank) if len(starts) > 1 else GREY, radius=9)
    return d.step(caption, caption + " Arrows of equal steps in the plane of two weights.")


def steps():
    return [picture("Equal steps from two places: the models stay as far apart as they were.", STARTS),
            picture("One start: one path.", STARTS[:1])]
