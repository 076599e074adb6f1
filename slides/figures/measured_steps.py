"""Deck 1: one step on one and on four GPUs, from data/step_times.csv."""

from figures.data import rows
from figures.drawing import ORANGE, SKY, Drawing


def steps():
    variants = rows("step_times")
    d = Drawing(1180, 90 * len(variants) + 60)
    scale = 390 / max(float(row["ms_4_gpus"]) for row in variants)
    for index, row in enumerate(variants):
        y = 20 + index * 90
        d.words(300, y + 35, row["variant"], 23, anchor="end")
        for offset, colour, column in ((0, ORANGE, "ms_1_gpu"), (36, SKY, "ms_4_gpus")):
            value = float(row[column])
            d.box(320, y + offset, scale * value, 32, colour, radius=2)
            gpus = "1 GPU" if column == "ms_1_gpu" else "4 GPUs, 4 times the samples"
            words = f"{value:g} ms" + (f" on {gpus}" if index == 0 else "")
            d.words(328 + scale * value, y + offset + 16, words, 21, anchor="start")
    return [d.step("", "Time of one training step, in milliseconds: "
                   + "; ".join(f"{row['variant']}: {row['ms_1_gpu']} on one GPU, {row['ms_4_gpus']} on four" for row in variants))]
