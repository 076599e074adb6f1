"""Deck 11: four ranks save a model over an older one, from data/sharded_save.csv: which files are complete when, and in
which folder."""

from figures.data import rows
from figures.drawing import GREEN, GREY, INK, SKY, YELLOW, Drawing

RANKS = 4
KINDS = (("model", "model"), ("optimizer", "optimizer"))
LEFT, RIGHT, WIDTH, TOP, ROW = 130, 690, 430, 100, 62

# A picture shows the folders after this event (rank, event, file); its caption.
PICTURES = (
    (None, "Before: model-best holds the model of epoch 1."),
    ((0, "folder made", ""), "Rank 0 makes a hidden folder. Nobody looks for a model there."),
    ((1, "begins", "model"), "All ranks write at the same time, each to its own file."),
    ((2, "begins", "optimizer"), "Rank 2 has its part on disk and goes on to the optimizer's state."),
    ((1, "begins", "optimizer"), "A kill now leaves half a model in the hidden folder. The old one is whole."),
    ((0, "done", "optimizer"), "The last part is on disk. The ranks tell each other."),
    ((0, "done", "manifest"), "Rank 0 lists all files with their sizes and hashes."),
    ((0, "folders swapped", ""), "One call exchanges the two names. There is no moment without a model."),
    ((0, "folder removed", ""), "Rank 0 removes the old model."),
)


def events():
    return [((int(row["rank"]), row["event"], row["file"]), row["bytes"]) for row in rows("sharded_save")]


class Folders:
    """What lies in the folder that is shown, and in the hidden one."""

    def __init__(self):
        complete = {(rank, kind): "old" for rank in range(RANKS) for kind, _ in KINDS} | {(0, "manifest"): "old"}
        self.shown, self.hidden = complete, None

    def take(self, rank, event, file):
        if event == "folder made":
            self.hidden = {}
        elif event == "begins":
            self.hidden[rank, file] = "coming"
        elif event == "done":
            self.hidden[rank, file] = "new"
        elif event == "folders swapped":
            self.shown, self.hidden = self.hidden, self.shown
        elif event == "folder removed":
            self.hidden = None


def draw_file(d, x, y, width, state, text):
    if state == "coming":
        d.box(x, y, width, ROW - 14, dashed=True).box(x, y, width * 0.65, ROW - 14, SKY)
        d.words(x + width * 0.325, y + (ROW - 14) / 2, text, 18, INK)
    elif state is not None:
        d.box(x, y, width, ROW - 14, {"old": GREY, "new": GREEN}[state], text, 18)


def draw_folder(d, x, name, content):
    d.box(x, 44, WIDTH, TOP + (RANKS + 1) * ROW - 74, dashed=content is None, faint=content is None)
    d.words(x + WIDTH / 2, 22, name, 23, bold=True)
    if content is None:
        d.words(x + WIDTH / 2, TOP + 2 * ROW, "not there", 22)
        return
    for rank in range(RANKS):
        for column, (kind, word) in enumerate(KINDS):
            draw_file(d, x + 14 + column * 205, TOP - 40 + rank * ROW, 195, content.get((rank, kind)), word)
    draw_file(d, x + 14, TOP - 40 + RANKS * ROW, 400, content.get((0, "manifest")), "manifest.json")


def picture(caption, folders):
    d = Drawing(1180, 470)
    for rank in range(RANKS):
        d.words(110, TOP - 40 + rank * ROW + 24, f"rank {rank}", 22, anchor="end")
    draw_folder(d, LEFT, "model-best", folders.shown)
    draw_folder(d, RIGHT, ".model-best.tmp", folders.hidden)
    for index, (colour, word) in enumerate(((GREY, "epoch 1"), (GREEN, "epoch 2, on disk"), (SKY, "epoch 2, being written"))):
        x = (130, 330, 640)[index]
        d.box(x, 436, 26, 26, colour).words(x + 38, 449, word, 20, anchor="start")
    said = [f"{name}: {'not there' if content is None else tally(content)}"
            for name, content in (("model-best", folders.shown), ("hidden folder", folders.hidden))]
    return d.step(caption, f"{caption} {'; '.join(said)}.")


def tally(content):
    words = {"old": "files of epoch 1", "new": "complete files of epoch 2", "coming": "files being written"}
    counts = {state: list(content.values()).count(state) for state in words}
    return ", ".join(f"{count} {words[state]}" for state, count in counts.items() if count) or "empty"


def steps():
    folders, left, pictures = Folders(), events(), []
    for until, caption in PICTURES:
        while until is not None:
            event, _ = left.pop(0)
            folders.take(*event)
            if event == until:
                break
        pictures.append(picture(caption, folders))
    return pictures
