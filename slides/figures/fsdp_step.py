"""Deck 10: one step of rank 0 of four under FSDP, from data/fsdp_events.csv: which units are whole when, and what that
takes."""

from figures.data import rows
from figures.drawing import GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, Drawing

RANKS = 4
MOST_MB = 12  # of the axis
LEFT, COLUMN, TOP, HEIGHT = 30, 124, 44, 104
CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 130, 1130, 268, 434

# After which event, the how-manieth of it, and what the picture says.
PICTURES = (
    ("step begins", "", 1, "Between two steps: a quarter of every unit, and of what the optimizer keeps."),
    ("gathered", "layers.0", 1, "Layer 0 computes; layer 1 is on its way. The rest (embedding, last layer) is whole for the step."),
    ("gathered", "layers.1", 1, "Layer 0 is freed. Its activations stay for backward()."),
    ("gathered", "layers.5", 1, "The curve climbs by activations, not by parameters."),
    ("forward ends", "", 1, "Forward ends. The last layer stays whole: backward() begins with it."),
    ("reduce", "layers.7", 1, "Layer 7 is done and freed. Its gradients are on their way. Layer 6 arrives."),
    ("gathered", "layers.5", 2, "Three things at once: layer 5 computes, layer 4 is coming, layer 6 sends its gradients."),
    ("gathered", "layers.2", 2, "Activations are used up, and the curve falls."),
    ("reduce", "(the rest)", 1, "The rest is reduced last."),
    ("step ends", "", 1, "The optimizer has changed its quarter. Everything is as before."),
)


def events():
    return [(row["event"], row["unit"], int(row["bytes"]) / 1e6) for row in rows("fsdp_events")]


def units(seen):
    return ["(the rest)", *sorted({unit for _, unit, _ in seen if unit.startswith("layers.")})]


def index_of(seen, event, unit, nth):
    """Of the nth such event."""
    return [i for i, (what, whose, _) in enumerate(seen) if (what, whose) == (event, unit)][nth - 1]


def states(seen, until):
    """Of each unit after that event: its parameters ("share", "coming" or "whole"), and whether gradients travel."""
    parameters, sending = {unit: "share" for unit in units(seen)}, set()
    for event, unit, _ in seen[:until + 1]:
        if event in ("gather", "gathered", "freed"):
            parameters[unit] = {"gather": "coming", "gathered": "whole", "freed": "share"}[event]
        elif event == "reduce":
            sending.add(unit)
        elif event == "reduced":
            sending.discard(unit)
    return parameters, sending


def draw_unit(d, x, name, state, sends):
    d.words(x + 54, 20, name, 21)
    d.box(x, TOP, 108, HEIGHT, GREEN if state == "whole" else None, dashed=state == "coming")
    if state != "whole":
        part = HEIGHT / RANKS
        d.box(x, TOP + HEIGHT - part, 108, part, ORANGE)
    word = {"whole": "whole", "coming": "coming", "share": ""}[state]
    d.words(x + 54, TOP + HEIGHT / 2 - (0 if state == "whole" else 12), word, 20, INK if state == "whole" else "currentColor")
    if sends:
        d.box(x, TOP + HEIGHT + 12, 108, 40, PURPLE, "gradients", 18)


def draw_curve(d, seen, now):
    def place(i):
        return (CURVE_LEFT + i * (CURVE_RIGHT - CURVE_LEFT) / (len(seen) - 1),
                CURVE_BOTTOM - seen[i][2] / MOST_MB * (CURVE_BOTTOM - CURVE_TOP))
    for megabytes in (0, 4, 8, 12):
        y = CURVE_BOTTOM - megabytes / MOST_MB * (CURVE_BOTTOM - CURVE_TOP)
        d.line(CURVE_LEFT, y, CURVE_RIGHT, y, 0.8, dashed=True)
        d.words(CURVE_LEFT - 12, y, f"{megabytes} MB", 20, anchor="end")
    for i in range(1, len(seen)):
        d.line(*place(i - 1), *place(i), 3 if i <= now else 1.4, colour=SKY if i <= now else "currentColor")
    x, y = place(now)
    d.box(x - 7, y - 7, 14, 14, VERMILION, radius=7)
    d.line(x, y - 7, x, CURVE_TOP - 6, 1.2)
    anchor = "start" if now < 8 else "end" if now > len(seen) - 8 else "middle"
    d.words(x, CURVE_TOP - 20, f"{seen[now][2]:.1f} MB", 22, anchor=anchor, bold=True)


def steps():
    seen, pictures = events(), []
    for event, unit, nth, caption in PICTURES:
        now = index_of(seen, event, unit, nth)
        parameters, sending = states(seen, now)
        d = Drawing(1180, 450)
        for i, name in enumerate(parameters):
            draw_unit(d, LEFT + i * COLUMN, name.removeprefix("layers.").replace("(the rest)", "rest"),
                      parameters[name], name in sending)
        draw_curve(d, seen, now)
        whole = [name for name, state in parameters.items() if state == "whole"]
        pictures.append(d.step(caption, f"{caption} Whole: {', '.join(whole) or 'none'}. "
                                        f"Rank 0's tensors take {seen[now][2]:.1f} MB."))
    return pictures
