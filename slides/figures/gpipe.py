"""Deck 7: GPipe's schedule, all forwards, then all backwards."""

from figures.schedule import picture

STAGES, MICROBATCHES = 4, 4


def steps():
    forward = [("F", micro) for micro in range(MICROBATCHES)]
    backward = [("B", micro) for micro in reversed(range(MICROBATCHES))]
    orders = [forward + backward] * STAGES
    return [picture(orders, "The first microbatch goes ahead …", "Forward passes of four microbatches start one after the other.", until=4),
            picture(orders, "… all forwards fill the pipeline …", "All forwards are done; GPU 3 has begun with backward passes.", until=7),
            picture(orders, "… then all backwards empty it. Idle: {idle} %.",
                    "GPipe on four GPUs with four microbatches: {idle} percent idle, at the beginning, in the middle and at the end.")]
