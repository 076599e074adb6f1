"""Deck 1: four GPUs, three ways to use them."""

from figures.drawing import ORANGE, RANKS, Drawing


def node(caption, alt, work):
    """work: for each GPU a text and a colour, or nothing."""
    d = Drawing(1180, 300)
    for gpu, what in enumerate(work):
        x = 30 + gpu * 285
        d.box(x, 40, 260, 190)
        d.words(x + 130, 262, f"GPU {gpu}", 24)
        if what:
            text, colour = what
            d.box(x + 18, 58, 224, 154, colour, text, 25)
        else:
            d.words(x + 130, 135, "idle", 26)
    return d.step(caption, alt)


def steps():
    all_in_one = ("four times\nthe same\ntraining", ORANGE)
    return [
        node("The serial program: one GPU works, three wait.", "Four GPUs; the first trains, the others are idle.",
             [("training", ORANGE), None, None, None]),
        node("Four GPUs asked for, nothing else changed: the same.",
             "Four GPUs allotted to the job; still only the first trains.", [("training", ORANGE), None, None, None]),
        node("The program started four times: four trainings on one GPU.",
             "Four processes crowd on the first GPU; the others are idle.", [all_in_one, None, None, None]),
        node("Each GPU a quarter of the data.",
             "Four GPUs, each with its quarter of the data.",
             [(f"data {part}/4\none model", RANKS[part - 1]) for part in (1, 2, 3, 4)]),
    ]
