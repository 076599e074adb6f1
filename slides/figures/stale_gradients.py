"""Deck 4: descent on w * w / 2 with gradients that are some steps old. Computed by that formula, not measured."""

from figures.drawing import GREEN, ORANGE, SKY, Drawing

RATE, STEPS = 0.4, 30


def weights(delay):
    """w after each step, where the gradient is that of the weight `delay` steps before."""
    w = [1.0]
    for step in range(STEPS):
        w.append(w[-1] - RATE * w[max(0, step - delay)])
    return w


def steps():
    d = Drawing(1180, 380)
    left, right, top, bottom = 110, 800, 20, 345
    x = lambda step: left + (right - left) * step / STEPS
    y = lambda w: bottom - (bottom - top) * (max(-4.0, min(4.0, w)) + 4) / 8
    d.line(left, y(0), right, y(0)).line(left, bottom, left, top)
    for value in (-4, -2, 0, 2, 4):
        d.line(left - 6, y(value), left, y(value)).words(left - 14, y(value), value, 20, anchor="end")
    for line, (delay, colour) in enumerate(((0, GREEN), (2, SKY), (4, ORANGE))):
        points = [(x(step), y(w)) for step, w in enumerate(weights(delay))]
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            d.line(x1, y1, x2, y2, 4, colour=colour)
        name = "fresh gradients" if delay == 0 else f"{delay} steps old"
        d.box(835, 60 + line * 48, 26, 26, colour).words(873, 73 + line * 48, name, 22, anchor="start")
    d.words(right - 10, y(0) + 24, "steps", 22, anchor="end").words(left + 12, top + 4, "weight", 22, anchor="start")
    return [d.step("By the formula w − 0.4 · gradient: the same rate, older gradients.",
                   "A weight over 30 steps. With fresh gradients it falls to 0 at once; with gradients two steps old it "
                   "swings and settles; with gradients four steps old the swings grow.")]
