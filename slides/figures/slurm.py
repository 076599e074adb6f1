"""Deck 6: the way of a job through Slurm."""

from figures.drawing import GREEN, GREY, ORANGE, SKY, Drawing


def picture(caption, depth, alt):
    d = Drawing(1180, 360)
    d.box(20, 120, 230, 110, SKY).words(135, 158, "login node", 24, "#14171a", bold=True)
    d.words(135, 196, "you, and sbatch", 21, "#14171a")
    d.box(400, 120, 230, 110, GREY, faint=depth < 1).words(515, 158, "queue", 24, "#14171a", bold=True)
    d.words(515, 196, "squeue --me", 21, "#14171a")
    if depth >= 1:
        d.arrow(254, 175, 396, 175).words(325, 140, "sbatch", 22)
    for node in range(2):
        y = 10 + node * 175
        d.box(780, y, 380, 140, dashed=True, radius=12).words(800, y + 118, f"node {node}", 22, anchor="start", bold=True)
        if depth >= 2 and node == 0:
            d.arrow(634, 160, 776, 100).box(800, y + 20, 150, 60, ORANGE, "script", 23)
        if depth >= 3:
            d.box(980, y + 20, 160, 60, GREEN, "torchrun", 23)
            d.arrow(952, 60, 976, y + 50 if node == 0 else y + 40)
    return d.step(caption, alt)


def steps():
    return [picture("You work on the login node.", 0, "A login node, a queue and two compute nodes."),
            picture("sbatch puts the job into the queue.", 1, "sbatch goes from the login node to the queue."),
            picture("When two nodes are free, Slurm runs the script on the first one.", 2, "The script runs on node 0."),
            picture("srun in the script starts torchrun on both nodes.", 3, "torchrun runs on both nodes.")]
