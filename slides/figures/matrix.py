"""What the pictures of tensor parallelism share: matrices as boxes."""

from figures.drawing import Drawing, rank_colour


def matrix(d, x, y, w, h, name, columns=1, rows=1, colour=None, size=24):
    """A matrix cut into columns or rows, each in its rank's colour; colour: one for all."""
    parts = columns * rows
    for part in range(parts):
        fill = colour or rank_colour(part)
        if columns > 1:
            d.box(x + part * w / columns, y, w / columns - 3, h, fill, f"{name}{part}", size)
        else:
            d.box(x, y + part * h / rows, w, h / rows - 3, fill, f"{name}{part}" if rows > 1 else name, size)
    return d


def sign(d, x, y, text):
    return d.words(x, y, text, 40)


__all__ = ["Drawing", "matrix", "sign"]
