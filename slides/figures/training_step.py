"""Deck 1: one step of training, and what goes from one part to the next."""

from figures.drawing import GREEN, GREY, ORANGE, PURPLE, SKY, Drawing


def picture(caption, depth, alt):
    d = Drawing(1180, 330)
    parts = ((20, GREY, "batch"), (310, SKY, "forward"), (600, ORANGE, "backward"), (890, GREEN, "optimizer"))
    for index, (x, colour, name) in enumerate(parts):
        d.box(x, 90, 200, 90, colour, name, 27, faint=index > depth, bold=True)
    for index, words in enumerate(("samples", "loss", "gradients")):
        if index < depth:
            x = parts[index][0] + 202
            d.arrow(x, 135, x + 84, 135).words(x + 44, 64, words, 22)
    if depth == 3:
        d.curve(990, 186, 700, 350, 410, 186, colour=PURPLE).words(700, 296, "new parameters, for the next batch", 23)
    return d.step(caption, alt)


def steps():
    return [picture("The loader gives a batch of samples.", 0, "A batch."),
            picture("Forward makes a guess and compares it with the targets: the loss.", 1, "Batch to forward."),
            picture("Backward computes a gradient for every parameter.", 2, "Forward passes a loss to backward."),
            picture("The optimizer changes the parameters. Only then can the next step start.", 3,
                    "Backward passes gradients to the optimizer, which passes new parameters to the next forward.")]
