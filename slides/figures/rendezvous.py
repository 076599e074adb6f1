"""Deck 6: how the nodes of a job find each other."""

from figures.drawing import ORANGE, SKY, YELLOW, Drawing


def picture(caption, stage):
    d = Drawing(1180, 390)
    d.box(30, 40, 330, 330, dashed=True, radius=12).words(195, 66, "node 0 = MASTER_ADDR", 24, bold=True)
    ranks = ("ranks 0–3\nof 12", "ranks 4–7\nof 12", "ranks 8–11\nof 12") if stage >= 3 else ("torchrun",) * 3
    d.box(70, 250, 250, 90, ORANGE, ranks[0], 26)
    if stage >= 1:
        d.box(70, 110, 250, 90, YELLOW, "store\nMASTER_PORT", 24)
    for index, x in enumerate((470, 850)):
        d.box(x, 40, 300, 330, dashed=True, radius=12).words(x + 150, 66, f"node {index + 1}", 24, bold=True)
        d.box(x + 25, 250, 250, 90, SKY, ranks[index + 1], 26)
        if stage >= 2:
            d.curve(x + 150, 246, x - 20, 150, 326, 150 + index * 20)
    if stage >= 2:
        d.arrow(195, 248, 195, 204)
    return d.step(caption, caption + " Three nodes.")


def steps():
    return [picture("Every node is told the same address, port and job id.", 0),
            picture("Node 0 is the host: it opens a store on that port.", 1),
            picture("All nodes connect to it, node 0 included.", 2),
            picture("When all have arrived, each process gets its rank.", 3)]
