"""Deck 5: two ranks with shares of different sizes. The numbers are worked out here."""

from figures.drawing import YELLOW, Drawing, rank_colour

LOSSES = ((2.0, 4.0, 6.0), (9.0,))


def steps():
    d = Drawing(1180, 360)
    for rank, losses in enumerate(LOSSES):
        y = 40 + rank * 100
        d.words(100, y + 35, f"rank {rank}", 25, anchor="end")
        for index, loss in enumerate(losses):
            d.box(120 + index * 100, y, 92, 70, rank_colour(rank), f"{loss:g}", 28)
        d.words(460, y + 35, f"sum {sum(losses):g}, count {len(losses)}", 25, anchor="start")
        d.words(760, y + 35, f"own mean {sum(losses) / len(losses):g}", 25, anchor="start")
    total, count = sum(map(sum, LOSSES)), sum(map(len, LOSSES))
    means = [sum(losses) / len(losses) for losses in LOSSES]
    d.box(120, 265, 480, 70, YELLOW, f"sums and counts: {total:g} / {count} = {total / count:g}", 26, bold=True)
    d.box(640, 265, 500, 70, None, f"mean of means: ({means[0]:g} + {means[1]:g}) / 2 = {sum(means) / 2:g}", 26, dashed=True)
    return [d.step("", f"Rank 0 has losses 2, 4, 6, rank 1 has 9. The mean of all is {total / count}; the mean of the "
                       f"ranks' means is {sum(means) / 2}.")]
