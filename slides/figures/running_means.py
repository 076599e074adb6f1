"""Deck 9: BatchNorm's buffers on two ranks in the last training step of an epoch, and what each rank
then evaluates. The numbers come from data/running_means.csv."""

from figures.data import rows
from figures.drawing import GREEN, ORANGE, SKY, VERMILION, Drawing, rank_colour


def picture(caption, alt, after, words):
    d = Drawing(1180, 350)
    d.words(370, 22, "last training step", 23, bold=True).words(930, 22, "evaluation", 23, bold=True)
    for rank in range(2):
        y = 60 + rank * 140
        d.words(110, y + 40, f"rank {rank}", 25, anchor="end")
        d.box(130, y, 150, 80, ORANGE, "rank 0's\nbuffers", 21)
        d.box(288, y, 170, 80, rank_colour(rank), "own batch\nadded", 21)
        d.box(466, y, 150, 80, GREEN, "gradients\naveraged", 21)
        if after:
            d.box(624, y, 150, 80, SKY, "buffers\nequal", 21)
        d.box(790, y, 380, 80, None if after else VERMILION, words[rank], 20)
    return d.step(caption, alt)


def steps():
    measured = rows("running_means")
    apart = [f"a running mean: {row['running_mean']}\nloss: {row['unsynchronised_loss']}" for row in measured]
    alike = [f"a running mean: {measured[0]['running_mean']}\nloss: {row['synchronised_loss']}" for row in measured]
    return [
        picture("The weights are equal, the buffers are not: each rank evaluates another model.",
                "After the last step the ranks have different running means and different losses of the same data.",
                False, apart),
        picture("synchronize_buffers: one model on all ranks.",
                "With synchronize_buffers both ranks have rank 0's running mean and its loss.", True, alike),
    ]
