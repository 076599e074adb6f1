"""Deck 6: a job that is longer than its time limit."""

from figures.drawing import GREEN, GREY, ORANGE, YELLOW, Drawing


def steps():
    d = Drawing(1180, 330)
    d.arrow(20, 270, 1165, 270).words(1130, 300, "time", 22)
    d.box(40, 120, 360, 80, GREEN, "trains, saves every 200 steps", 23)
    d.box(404, 120, 110, 80, YELLOW, "saves", 23)
    d.box(530, 120, 190, 80, GREY, "in the queue", 23)
    d.box(736, 120, 110, 80, YELLOW, "loads", 23)
    d.box(850, 120, 290, 80, GREEN, "goes on, same bits", 23)
    d.arrow(404, 60, 404, 116, 3, ORANGE).words(404, 40, "2 minutes left: SIGUSR1", 23)
    d.arrow(522, 235, 522, 204, 3, ORANGE).words(522, 250, "scontrol requeue", 22)
    return [d.step("", "Time line of a job: it trains and saves; two minutes before its end Slurm signals, the ranks "
                       "save and stop, the job is requeued, loads the checkpoint and goes on.")]
