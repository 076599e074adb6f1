"""What the pictures of pipelines share: the schedule is played through, not drawn by hand."""

from figures.drawing import GREEN, ORANGE, SKY, PURPLE, Drawing

FORWARD = (SKY, ORANGE, GREEN, PURPLE)


def play(orders, stages):
    """orders[stage]: its work in order, pairs ("F" or "B", microbatch). Returns (stage, start, kind,
    microbatch): each piece starts as soon as its stage is free and what it needs is there. A forward
    takes one unit, a backward two."""
    done, free, position, pieces = {}, [0] * stages, [0] * stages, []
    while any(position[s] < len(orders[s]) for s in range(stages)):
        before = len(pieces)
        for stage in range(stages):
            if position[stage] == len(orders[stage]):
                continue
            kind, micro = orders[stage][position[stage]]
            if kind == "F":
                need = ("F", stage - 1, micro) if stage else None
            else:
                need = ("B", stage + 1, micro) if stage < stages - 1 else ("F", stage, micro)
            if need and need not in done:
                continue
            start = max(free[stage], done[need] if need else 0)
            free[stage] = done[kind, stage, micro] = start + (1 if kind == "F" else 2)
            pieces.append((stage, start, kind, micro))
            position[stage] += 1
        assert len(pieces) > before, "the schedule waits for itself"
    return pieces


def picture(orders, caption, alt, until=None):
    stages = len(orders)
    pieces = play(orders, stages)
    end = max(start + (1 if kind == "F" else 2) for _, start, kind, _ in pieces)
    unit, d = 1040 / end, Drawing(1180, 78 * stages + 50)
    for stage in range(stages):
        y = 14 + stage * 78
        d.words(112, y + 30, f"GPU {stage}", 23, anchor="end")
        d.box(124, y, unit * end, 62, dashed=True, radius=2)
    for stage, start, kind, micro in pieces:
        if until is not None and start >= until:
            continue
        width = unit * (1 if kind == "F" else 2)
        text = f"{micro + 1}" if kind == "F" else f"{micro + 1}′"
        d.box(124 + start * unit, 14 + stage * 78, width - 2, 62, FORWARD[micro % 4], text, 22, radius=2, bold=kind == "B")
    d.words(124, 78 * stages + 32, "1, 2, …: forward of a microbatch;  1′, 2′, …: its backward;  dashed: idle", 21, anchor="start")
    busy = sum(1 if kind == "F" else 2 for _, _, kind, _ in pieces)
    idle = 1 - busy / (end * stages)
    return d.step(caption.format(idle=f"{100 * idle:.0f}"), alt.format(idle=f"{100 * idle:.0f}"))
