"""Deck 7: the 1F1B schedule, which frees activations early."""

from figures.schedule import picture

STAGES, MICROBATCHES = 4, 8


def order(stage):
    warm_up = min(STAGES - 1 - stage, MICROBATCHES)
    work = [("F", micro) for micro in range(warm_up)]
    for micro in range(MICROBATCHES - warm_up):
        work += [("F", warm_up + micro), ("B", micro)]
    return work + [("B", micro) for micro in range(MICROBATCHES - warm_up, MICROBATCHES)]


def steps():
    orders = [order(stage) for stage in range(STAGES)]
    return [picture(orders, "Warm-up: stage s runs ahead by a few forwards …", "The pipeline fills.", until=6),
            picture(orders, "… then one forward, one backward, in turn. Idle: {idle} %.",
                    "1F1B on four GPUs with eight microbatches: {idle} percent idle; a GPU never holds more than four "
                    "microbatches' activations.")]
