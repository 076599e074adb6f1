"""Deck 4: one backward pass in time, without and with buckets. A sketch; its lengths are not measured."""

from figures.drawing import GREEN, GREY, ORANGE, PURPLE, SKY, Drawing

LAYERS = (("layer 3", 180), ("layer 2", 180), ("layer 1", 180))
COLOURS = (ORANGE, SKY, GREEN)


def lanes(d, top, title):
    d.words(10, top - 22, title, 24, anchor="start", bold=True)
    d.words(10, top + 27, "computes", 21, anchor="start").words(10, top + 97, "sends", 21, anchor="start")


def step_of(d, x, top, width=90):
    d.box(x, top, width, 54, GREY, "step", 22)


def backward(d, top, shown=3):
    x = 130
    d.box(x, top, 150, 54, GREY, "forward", 22)
    x += 154
    for (name, width), colour in list(zip(LAYERS, COLOURS))[:shown]:
        d.box(x, top, width, 54, colour, "backward " + name[-1], 22)
        x += width + 4
    return x


def steps():
    pictures = []
    d = Drawing(1180, 340)
    lanes(d, 60, "first compute, then send")
    end = backward(d, 60)
    d.box(end, 130, 250, 54, PURPLE, "all gradients at once", 22)
    step_of(d, end + 254, 60, 70)
    pictures.append(d.step("Nothing is sent while layers are computed, and the other way round.",
                           "Time line: forward, backward of layers 3, 2, 1, then one long all-reduce, then the optimizer step."))
    for shown, caption in ((1, "Layer 3's gradients are complete first: their bucket leaves."),
                           (2, "While layer 1 is being computed, bucket 2 follows."),
                           (3, "Only the last bucket has nothing to hide behind.")):
        d = Drawing(1180, 340)
        lanes(d, 60, "buckets, sent while backward runs")
        backward(d, 60, min(shown + 1, 3))
        x = 130 + 154
        for index in range(shown):
            x += LAYERS[index][1] + 4
            d.box(x, 130, 120, 54, COLOURS[index], f"bucket {3 - index}", 22)
        if shown == 3:
            step_of(d, x + 124, 60, 70)
            d.words(x + 60, 215, "not hidden", 21)
        pictures.append(d.step(caption, caption + " Time line with a lane for computing and one for sending."))
    return pictures
