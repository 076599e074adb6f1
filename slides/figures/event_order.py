"""Deck 8: the order of events by which the checker sees overlap, in three programs. A sketch; its lengths are not
measured, and nothing that the checker looks at is a length."""

from figures.drawing import GREEN, ORANGE, SKY, VERMILION, Drawing

LAYERS = ((3, ORANGE), (2, SKY), (1, GREEN))
COMPUTE, SEND = 170, 130


def program(kind):
    """What happens when: (layer, begin of its backward) and (layer, call, wait, products in between)."""
    computed, messages, time = [], [], 0
    for layer, _ in LAYERS:
        computed.append((layer, time))
        time += COMPUTE
        if kind == "waits":
            messages.append((layer, time, time + SEND))
            time += SEND
    if kind == "after":
        for index, (layer, _) in enumerate(LAYERS):
            messages.append((layer, time + index * SEND, time + (index + 1) * SEND))
    if kind == "overlaps":
        messages = [(layer, begin + COMPUTE, time + 20 + index * 70) for index, (layer, begin) in enumerate(computed)]
        messages[-1] = (1, time, time + 20 + SEND)
    return computed, [(layer, call, wait, sum(call <= begin < wait for _, begin in computed))
                      for layer, call, wait in messages]


def picture(kind, title, caption):
    d = Drawing(1180, 330)
    d.words(10, 24, title, 24, anchor="start", bold=True)
    d.words(10, 82, "computes", 21, anchor="start")
    d.words(10, 182, "sends", 21, anchor="start")
    computed, messages = program(kind)
    colours = dict(LAYERS)
    for layer, begin in computed:
        d.box(130 + begin, 55, COMPUTE - 4, 54, colours[layer], f"layer {layer}", 22)
    for index, (layer, call, wait, between) in enumerate(messages):
        top = 150 + (index * 40 if kind == "overlaps" else 0)
        d.box(130 + call, top, max(wait - call - 4, 60), 36, colours[layer] if between else VERMILION,
              f"{between} between" if kind == "overlaps" else f"{between}", 20)
    d.words(130, 300, "numbers: matrix products that begin between a message and its wait", 21, anchor="start")
    alt = f"{title}: products between the calls and the waits of three messages: " + ", ".join(
        str(between) for *_, between in messages) + "."
    return d.step(caption, alt)


def steps():
    return [
        picture("after", "after backward()", "Every number is right, and nothing overlaps."),
        picture("waits", "the hook waits", "Every number is right, messages leave early, and still nothing overlaps."),
        picture("overlaps", "the hook starts, finish() waits",
                "The first message has two layers to hide behind, the last one none."),
    ]
