"""Deck 2: the world, and groups within it."""

from figures.drawing import RANKS, SKY, Drawing

WIDE, HIGH = 128, 84
WORLD = list(range(8))
ROWS, COLUMNS = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]


def place(rank):
    return 270 + rank % 4 * 165, 55 + rank // 4 * 135


def picture(caption, alt, groups):
    d = Drawing(1180, 340)
    for number, group in enumerate(groups):
        for rank in group:
            x, y = place(rank)
            d.box(x, y, WIDE, HIGH, RANKS[number % 4] if len(groups) > 1 else SKY, f"rank {rank}", 24)
        (left, top), (right, bottom) = place(group[0]), place(group[-1])
        d.box(left - 14, top - 16, right - left + WIDE + 28, bottom - top + HIGH + 32, dashed=True, radius=14)
    return d.step(caption, alt)


def steps():
    return [
        picture("The default group is the world: all ranks.", "Eight ranks in one group.", [WORLD]),
        picture("Two groups of four, for example one model replica each.", "Ranks 0 to 3 are a group, and 4 to 7.", ROWS),
        picture("Four groups of two: a rank can be in several groups.", "Ranks 0 and 4 are a group, 1 and 5, and so on.", COLUMNS),
    ]
