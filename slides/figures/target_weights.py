"""Deck 9: how much a target counts in the gradient, with 3 targets on one rank and 20 on the other. The
numbers are worked out here."""

from fractions import Fraction

from figures.drawing import YELLOW, Drawing, rank_colour

COUNTS = (3, 20)
GRADIENTS = (11, 1)  # of each target, alike on a rank


def mean_over_targets():
    return Fraction(sum(c * g for c, g in zip(COUNTS, GRADIENTS)), sum(COUNTS))


def mean_of_means():
    return Fraction(sum(GRADIENTS), len(COUNTS))


def steps():
    d = Drawing(1180, 400)
    d.words(850, 20, "one target counts", 22, bold=True).words(1080, 20, "it should", 22, bold=True)
    for rank, (count, gradient) in enumerate(zip(COUNTS, GRADIENTS)):
        y = 46 + rank * 100
        d.words(90, y + 32, f"rank {rank}", 24, anchor="end")
        for index in range(count):
            d.box(106 + index * 25, y, 22, 64, rank_colour(rank), radius=3)
        d.words(620, y + 32, f"each {gradient}", 23, anchor="start")
        d.words(850, y + 32, f"1/2 · 1/{count} = 1/{2 * count}", 23)
        d.words(1080, y + 32, f"1/{sum(COUNTS)}", 23)
    right, wrong = mean_over_targets(), mean_of_means()
    error = abs(wrong - right) / right
    sums = " + ".join(f"{count} · {gradient}" for count, gradient in zip(COUNTS, GRADIENTS))
    d.box(106, 262, 500, 56, YELLOW, f"over targets: ({sums}) / {sum(COUNTS)} = {float(right):.2f}", 23, bold=True)
    d.box(640, 262, 530, 56, None, f"mean of means: ({GRADIENTS[0]} + {GRADIENTS[1]}) / 2 = {float(wrong):g}", 23, dashed=True)
    d.words(590, 362, f"relative error: ({float(wrong):g} − {float(right):.2f}) / {float(right):.2f} = {float(error):.2f}", 26)
    return [d.step("", f"Rank 0 has 3 targets with gradient 11, rank 1 has 20 with gradient 1. The mean over targets is "
                       f"{float(right):.2f}, the mean of the ranks' means {float(wrong):g}: off by {float(error):.2f}.")]
