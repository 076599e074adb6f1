"""Deck 0: how one works with the workbook."""

from figures.drawing import GREEN, ORANGE, PURPLE, SKY, Drawing


def steps():
    d = Drawing(1180, 340)
    names = ((40, ORANGE, "edit", "steps/…/train.cpp,\nat the next TODO"), (430, SKY, "save", "watch builds it and\nruns 1, 2 and 3 ranks"),
             (820, GREEN, "verdict", "which TODO is wrong,\nand why"))
    for x, colour, name, words in names:
        d.box(x, 60, 310, 160, colour)
        d.words(x + 155, 100, name, 32, "#14171a", bold=True).words(x + 155, 165, words, 23, "#14171a")
    d.arrow(352, 140, 426, 140).arrow(742, 140, 816, 140)
    d.curve(975, 226, 590, 370, 205, 226, colour=PURPLE)
    d.words(590, 322, "stuck? hint, then diff", 23)
    return [d.step("", "A circle: edit the step at its next TODO, save, read the verdict, and edit again.")]
