"""Deck 0: the task as a black box."""

from figures.drawing import GREEN, ORANGE, SKY, Drawing


def steps():
    d = Drawing(1180, 380)
    d.box(20, 110, 250, 110, SKY, "the words so far", 24)
    d.words(145, 250, "“the old river”", 24)
    d.box(430, 70, 320, 190, "#3b4450", radius=12)
    d.words(590, 150, "model", 34, "#ffffff", bold=True)
    d.words(590, 195, "about a million numbers", 22, "#ffffff")
    d.box(910, 110, 250, 110, GREEN, "the next word", 24)
    d.words(1035, 250, "“runs” 31 %, “was” 9 %, …", 22)
    d.arrow(275, 165, 425, 165).arrow(755, 165, 905, 165)
    d.curve(1035, 280, 820, 400, 610, 268, colour=ORANGE)
    d.words(560, 350, "training turns the numbers, a little each time", 22)
    return [d.step("", "Words go into a box, the model; probabilities of the next word come out. "
                       "Training changes the numbers inside a little after every guess.")]
