"""Deck 9: loss after the same number of samples over the batch size, from data/batch_sizes.csv."""

from math import log2

from figures.data import rows
from figures.drawing import ORANGE, SKY, Drawing


def steps():
    measured = rows("batch_sizes")
    losses = [float(row[key]) for row in measured for key in ("least", "most")]
    low, high = min(losses), max(losses)
    low, high = low - 0.08 * (high - low), high + 0.08 * (high - low)
    batches = sorted({int(row["batch"]) for row in measured})
    d = Drawing(1180, 410)
    left, right, top, bottom = 150, 800, 20, 330
    x = lambda batch: left + 40 + (right - left - 80) * log2(batch / batches[0]) / log2(batches[-1] / batches[0])
    y = lambda loss: bottom - (bottom - top) * (loss - low) / (high - low)
    d.line(left, bottom, right, bottom).line(left, bottom, left, top)
    for batch in batches:
        d.words(x(batch), bottom + 22, f"{batch}", 20)
    for tick in range(4):
        loss = low + (high - low) * tick / 3
        d.words(left - 12, y(loss), f"{loss:.3f}", 20, anchor="end")
    for rate, colour, name, at in (("unchanged", SKY, "rate unchanged", 60), ("scaled", ORANGE, "rate times √W", 110)):
        points = [row for row in measured if row["rate"] in (rate, "either")]
        for row in points:
            d.line(x(int(row["batch"])), y(float(row["least"])), x(int(row["batch"])), y(float(row["most"])), 9, colour=colour)
        for one, two in zip(points, points[1:]):
            d.line(x(int(one["batch"])), y(float(one["loss"])), x(int(two["batch"])), y(float(two["loss"])), 4, colour=colour)
        d.box(840, at, 26, 26, colour).words(878, at + 13, name, 23, anchor="start")
    d.words((left + right) / 2, bottom + 60, "samples a step, on all ranks", 22)
    d.words(left + 8, top, "validation loss", 22, anchor="start")
    words = "; ".join(f"{row['batch']} samples a step, rate {row['rate']}: {row['loss']}" for row in measured)
    return [d.step("", "Validation loss after the same number of samples: " + words)]
