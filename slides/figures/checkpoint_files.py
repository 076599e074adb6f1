"""Deck 11: what each rank writes of a model and its optimizer's state, from data/checkpoint_files.csv."""

from figures.data import rows
from figures.drawing import ORANGE, SKY, Drawing

LEFT, WIDTH, ROW = 230, 700, 46


def written():
    """By number of ranks: megabytes of parameters and of state, rank by rank."""
    found = {}
    for row in rows("checkpoint_files"):
        parts = int(row["model"]) / 1e6, int(row["optimizer"]) / 1e6
        found.setdefault(int(row["ranks"]), []).append(parts)
    return found


def steps():
    found = written()
    scale = WIDTH / max(model + state for ranks in found.values() for model, state in ranks)
    d = Drawing(1180, 70 + sum(len(ranks) * ROW + 40 for ranks in found.values()))
    d.box(LEFT, 8, 28, 28, SKY).words(LEFT + 38, 22, "parameters", 21, anchor="start")
    d.box(LEFT + 240, 8, 28, 28, ORANGE).words(LEFT + 278, 22, "the optimizer's state", 21, anchor="start")
    y, said = 60, []
    for ranks in sorted(found, reverse=True):
        for rank, (model, state) in enumerate(found[ranks]):
            d.words(LEFT - 14, y + 18, f"{ranks} ranks, rank {rank}", 21, anchor="end")
            d.box(LEFT, y, scale * model, ROW - 10, SKY, radius=2)
            d.box(LEFT + scale * model, y, scale * state, ROW - 10, ORANGE, radius=2)
            d.words(LEFT + scale * (model + state) + 12, y + 18, f"{model:.2f} + {state:.2f} MB", 21, anchor="start")
            said.append(f"rank {rank} of {ranks}: {model:.2f} and {state:.2f}")
            y += ROW
        y += 40
    return [d.step("", "Megabytes of parameters and of state that each rank writes: " + "; ".join(said))]
