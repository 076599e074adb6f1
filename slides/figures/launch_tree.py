"""Deck 6: who starts whom."""

from figures.drawing import GREY, ORANGE, RANKS, Drawing


def picture(caption, depth, alt):
    d = Drawing(1180, 430)
    d.box(440, 10, 300, 62, GREY, "sbatch script, once", 24)
    for node in range(2):
        x = 20 + node * 590
        d.box(x, 130, 550, 290, dashed=True, radius=12).words(x + 20, 400, f"node {node}", 23, anchor="start", bold=True)
        if depth >= 1:
            d.arrow(520 + node * 140, 74, x + 275, 156)
            d.box(x + 125, 160, 300, 58, ORANGE, "torchrun", 25)
        if depth >= 2:
            for local in range(4):
                bx = x + 20 + local * 130
                d.arrow(x + 275, 220, bx + 60, 276, 2)
                d.box(bx, 280, 120, 92, RANKS[local], f"rank {node * 4 + local}\nGPU {local}", 23)
    if depth >= 1:
        d.words(930, 60, "srun: one task a node", 23)
    return d.step(caption, alt)


def steps():
    return [picture("sbatch runs the script once, on the first node.", 0, "The script runs on node 0; two nodes are allotted."),
            picture("srun starts one torchrun on each node.", 1, "srun starts a torchrun on each of the two nodes."),
            picture("Each torchrun starts one rank per GPU.", 2, "Each torchrun starts four ranks, 0 to 3 and 4 to 7.")]
