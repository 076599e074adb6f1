"""Deck 7: 3-D parallelism on sixteen GPUs: data 2, pipeline 2, tensor 4."""

from figures.drawing import RANKS, Drawing

DATA, PIPELINE, TENSOR = 2, 2, 4


def steps():
    d = Drawing(1180, 440)
    rank = 0
    for data in range(DATA):
        y = 40 + data * 195
        d.words(130, y + 75, f"replica {data}", 25, anchor="end", bold=True)
        for stage in range(PIPELINE):
            x = 150 + stage * 520
            d.box(x, y, 490, 150, dashed=True, radius=12)
            d.words(x + 245, y + 24, f"stage {stage}: its layers, cut four ways", 21)
            for tensor in range(TENSOR):
                d.box(x + 14 + tensor * 117, y + 46, 110, 90, RANKS[tensor], f"rank\n{rank}", 23)
                rank += 1
            if stage:
                d.arrow(x - 29, y + 75, x - 2, y + 75, 4)
    d.line(395, 192, 395, 233, 6).line(915, 192, 915, 233, 6)
    d.words(655, 214, "gradients averaged between replicas", 22)
    d.words(655, 18, "activations from stage to stage →", 22)
    return [d.step("", "Sixteen ranks: two replicas, each with two pipeline stages, each stage on four GPUs with tensor parallelism.")]
