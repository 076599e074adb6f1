"""Deck 9: the training times that the courses on images and summaries reported, from
data/course_times.csv. The dashed frame is the time that more GPUs alone would leave."""

from figures.data import rows
from figures.drawing import GREEN, SKY, Drawing


def in_words(seconds):
    return f"{seconds // 60} min" + (f" {seconds % 60:02} s" if seconds % 60 else "")


def steps():
    runs = rows("course_times")
    d = Drawing(1180, 420)
    scale, first, told = 560 / max(int(row["seconds"]) for row in runs), {}, []
    for index, row in enumerate(runs):
        seconds, gpus = int(row["seconds"]), int(row["gpus"])
        one = first.setdefault(row["run"], seconds)
        y = 12 + index * 78 + (24 if row["run"] == "XSum" else 0)
        d.words(300, y + 28, f"{row['run']}, {gpus} GPU{'s' if gpus > 1 else ''}", 23, anchor="end")
        d.box(320, y, scale * seconds, 56, SKY if row["run"] == "ImageWoof" else GREEN, radius=2)
        if gpus > 1:
            d.box(320, y - 4, scale * one / gpus, 64, None, dashed=True, radius=2)
        words = in_words(seconds) + (f", {one / seconds:.2f} times as fast" if gpus > 1 else "")
        if row["accuracy"]:
            words += f"; accuracy {row['accuracy']}"
        d.words(336 + scale * max(seconds, one / gpus), y + 28, words, 22, anchor="start")
        told.append(f"{row['run']} on {gpus} GPUs: {words}")
    return [d.step("Dashed: the time on one GPU, divided by the number of GPUs.", "; ".join(told))]
