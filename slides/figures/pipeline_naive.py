"""Deck 7: layers on four GPUs, one batch at a time."""

from figures.schedule import picture


def steps():
    orders = [[("F", 0), ("B", 0)]] * 4
    return [picture(orders, "One batch walks through: at any time one GPU works. Idle: {idle} %.",
                    "Four GPUs with a quarter of the layers each; one batch goes forward through all and back. "
                    "{idle} percent of the time is idle.")]
