"""Deck 11: the training loss of a run that continues, with and without the optimizer's state, from
data/continued_losses.csv."""

from figures.data import rows
from figures.drawing import SKY, VERMILION, Drawing

LEFT, RIGHT, TOP, BOTTOM = 110, 880, 60, 390
LOWEST, HIGHEST = 3.6, 4.0
WAYS = (("without_state", "a new optimizer", VERMILION), ("with_state", "with its state", SKY))


def place(step, loss, count):
    return (LEFT + (step - 1) * (RIGHT - LEFT) / (count - 1),
            BOTTOM - (loss - LOWEST) / (HIGHEST - LOWEST) * (BOTTOM - TOP))


def steps():
    seen = rows("continued_losses")
    d = Drawing(1180, 450)
    d.words(LEFT - 60, 24, "training loss", 21, anchor="start")
    for index in range(5):
        loss = LOWEST + index * (HIGHEST - LOWEST) / 4
        _, y = place(1, loss, len(seen))
        d.line(LEFT, y, RIGHT, y, 0.8, dashed=True).words(LEFT - 12, y, f"{loss:.1f}", 20, anchor="end")
    for step in (1, 10, 20, 30, 40):
        d.words(place(step, LOWEST, len(seen))[0], BOTTOM + 22, step, 20)
    d.words((LEFT + RIGHT) / 2, BOTTOM + 48, "step after the start", 21)
    for column, name, colour in WAYS:
        points = [place(int(row["step"]), float(row[column]), len(seen)) for row in seen]
        for begin, end in zip(points, points[1:]):
            d.line(*begin, *end, 3.4, colour=colour)
        _, y = points[-1]
        d.box(RIGHT + 14, y - 9, 18, 18, colour).words(RIGHT + 42, y, name, 22, anchor="start", bold=True)
    apart = max(seen, key=lambda row: float(row["without_state"]) - float(row["with_state"]))
    return [d.step("", "Training losses of 40 steps. Both runs begin at "
                       f"{float(seen[0]['with_state']):.2f}. In step {apart['step']} the new optimizer is at "
                       f"{float(apart['without_state']):.2f}, the one with its state at {float(apart['with_state']):.2f}. "
                       f"After 40 steps they are at {float(seen[-1]['without_state']):.2f} and "
                       f"{float(seen[-1]['with_state']):.2f}.")]
