"""Deck 7: what one parameter costs each GPU, under DDP and under FSDP on four. Counted, not measured."""

from figures.drawing import GREEN, ORANGE, SKY, YELLOW, Drawing

PARTS = (("weights", 4, SKY), ("gradients", 4, ORANGE), ("AdamW: mean", 4, GREEN), ("AdamW: square", 4, YELLOW))
WORLD = 4


def steps():
    d = Drawing(1180, 330)
    for row, (name, share) in enumerate((("DDP", 1), ("FSDP, 4 GPUs", WORLD))):
        y, x = 50 + row * 140, 200
        d.words(180, y + 40, name, 26, anchor="end", bold=True)
        for part, size, colour in PARTS:
            width = size * 50 / share
            d.box(x, y, width - 4, 80, colour, part if share == 1 else "", 22)
            x += width
        total = sum(size for _, size, _ in PARTS) / share
        d.words(x + 12, y + 40, f"{total:g} bytes", 25, anchor="start")
    d.words(200, 305, "per parameter, in fp32, on each GPU; activations come on top", 22, anchor="start")
    return [d.step("", "Bytes per parameter on each GPU: DDP 16, four each for weights, gradients and AdamW's two "
                       "averages; FSDP on four GPUs 4 in all.")]
