"""Deck 10: what each rank's tensors take under DDP and under FSDP, from data/fsdp_memory.csv."""

from figures.data import rows
from figures.drawing import ORANGE, SKY, Drawing

WAYS = (("DistributedDataParallel", "DDP"), ("one unit", "FSDP, one unit"), ("block by block", "FSDP, by block"))


def fullest():
    """By (ranks, way): the megabytes of the fullest rank, between steps and at most."""
    found = {}
    for row in rows("fsdp_memory"):
        key = int(row["ranks"]), row["way"]
        own = int(row["between_steps"]) / 1e6, int(row["most"]) / 1e6
        found[key] = tuple(map(max, found.get(key, own), own))
    return found


def steps():
    found = fullest()
    worlds = sorted({ranks for ranks, _ in found})
    d = Drawing(1180, 120 + len(worlds) * 190)
    scale = 620 / max(most for _, most in found.values())
    d.box(330, 8, 28, 28, ORANGE).words(368, 22, "between two steps", 21, anchor="start")
    d.box(610, 8, 28, 28, SKY).words(648, 22, "the most within a step", 21, anchor="start")
    said = []
    for block, ranks in enumerate(worlds):
        top = 60 + block * 200
        d.words(20, top + 84, f"{ranks} ranks", 24, anchor="start", bold=True)
        for row, (way, name) in enumerate(WAYS):
            between, most = found[ranks, way]
            y = top + row * 58
            d.words(318, y + 22, name, 21, anchor="end")
            d.box(330, y, scale * most, 44, SKY).box(330, y, scale * between, 44, ORANGE, radius=2)
            d.words(342 + scale * most, y + 22, f"{between:.1f} and {most:.1f} MB", 21, anchor="start")
            said.append(f"{ranks} ranks, {name}: {between:.1f} and {most:.1f}")
    return [d.step("", "Megabytes of each rank's tensors between two steps and at most: " + "; ".join(said))]
