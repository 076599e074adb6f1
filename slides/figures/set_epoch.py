"""Deck 4: the order with and without set_epoch. Shuffled by Python's generator, seeded as the sampler is."""

import random

from figures.drawing import Drawing, rank_colour


def row(d, y, name, seed):
    order = list(range(8))
    random.Random(seed).shuffle(order)
    d.words(180, y + 27, name, 24, anchor="end")
    for place, sample in enumerate(order):
        d.box(205 + place * 57, y, 51, 54, rank_colour(sample // 2), sample, 25)


def steps():
    d = Drawing(1180, 345)
    d.words(430, 22, "without set_epoch", 25, bold=True)
    d.words(430, 320, "the same batches again and again", 22)
    for epoch in range(3):
        row(d, 50 + epoch * 82, f"epoch {epoch}", 4)
    other = Drawing()
    for epoch in range(3):
        row(other, 50 + epoch * 82, "", 4 + epoch)
    d.words(926, 22, "with set_epoch", 25, bold=True)
    d.words(926, 320, "seed + epoch: always a new order", 22)
    d.parts.append('<g transform="translate(496 0)">' + "".join(other.parts) + "</g>")
    return [d.step("", "Eight samples in three epochs. Without set_epoch the order is the same in each; with it, "
                       "each epoch has an order of its own.")]
