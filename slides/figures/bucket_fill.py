"""Deck 8: how the gradients of the task signals go into buckets, by TODO 21's rule. Computed, not measured."""

from figures.drawing import GREEN, GREY, ORANGE, PURPLE, SKY, Drawing

WIDTH, LABELS, REACH = 16, 3, 7  # of tasks/signals/configs/laptop.yaml and its model
PARAMETERS = (("first", WIDTH * REACH), ("norm", WIDTH), ("norm", WIDTH), ("second", WIDTH * WIDTH * REACH),
              ("norm", WIDTH), ("norm", WIDTH), ("output", LABELS * WIDTH), ("bias", LABELS))
COLOURS = (ORANGE, SKY, GREEN, PURPLE)


def limit():
    """A quarter of all elements."""
    return sum(size for _, size in PARAMETERS) / 4


def buckets():
    """Places of parameters, from the last one on; one that does not fit begins the next bucket."""
    filled, room = [], 0
    for place in reversed(range(len(PARAMETERS))):
        size = PARAMETERS[place][1]
        if size > room:
            filled.append([])
            room = limit()
        filled[-1].append(place)
        room -= size
    return filled


def picture(shown, caption):
    d = Drawing(1180, 330)
    d.words(590, 22, "parameters in the order of the model; backward() comes from the right", 23)
    bucket_of = {place: number for number, places in enumerate(buckets()) for place in places}
    for place, (name, size) in enumerate(PARAMETERS):
        filled = bucket_of[place] < shown
        d.box(20 + place * 144, 60, 134, 84, COLOURS[bucket_of[place]] if filled else GREY, f"{name}\n{size}", 22)
    for number, places in list(enumerate(buckets()))[:shown]:
        x = 790 - number * 385
        d.arrow(20 + places[0] * 144 + 67, 148, x + 180, 212, 2.6)
        elements = sum(PARAMETERS[place][1] for place in places)
        d.box(x, 216, 360, 84, COLOURS[number],
              f"bucket {number + 1}: {len(places)} gradient{'s' if len(places) > 1 else ''}\n{elements} elements", 22)
    return d.step(caption, caption + " The parameters of signals, and how they are dealt out to buckets.")


def steps():
    return [
        picture(0, f"A bucket holds about {limit():.0f} elements, a quarter of all."),
        picture(1, "The last four gradients fit. The next one does not."),
        picture(2, "A parameter that is larger than a bucket has one of its own."),
        picture(3, "Three messages instead of eight. The first leaves before the large layer is computed."),
    ]
