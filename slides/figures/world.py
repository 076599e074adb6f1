"""Deck 2: two nodes, and the three numbers that say who is who."""

from figures.drawing import RANKS, Drawing


def picture(caption, alt, per_node, show_rank, show_local):
    d = Drawing(1180, 380)
    rank = 0
    for node in range(2):
        x = 20 + node * 590
        d.box(x, 30, 550, 320, dashed=True, radius=12).words(x + 275, 62, f"node {node}", 26, bold=True)
        for local in range(per_node):
            width = 520 / per_node
            bx = x + 16 + local * width
            d.box(bx, 95, width - 10, 235, RANKS[local])
            d.words(bx + width / 2 - 5, 130, f"GPU {local}", 22, "#14171a")
            if show_rank:
                d.words(bx + width / 2 - 5, 195, f"rank\n{rank}", 30, "#14171a", bold=True)
            if show_local:
                d.words(bx + width / 2 - 5, 283, f"local\nrank {local}", 24, "#14171a")
            rank += 1
    return d.step(caption, alt)


def steps():
    return [
        picture("world size 8: as many processes as GPUs", "Two nodes with four GPUs each.", 4, False, False),
        picture("rank: 0 to 7, over all nodes", "The processes have ranks 0 to 3 on node 0 and 4 to 7 on node 1.", 4, True, False),
        picture("local rank: 0 to 3 again on each node", "Each node counts its processes 0 to 3 as local ranks.", 4, True, True),
    ]
