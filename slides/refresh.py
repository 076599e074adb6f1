"""Runs the commands of captures.yaml again and writes down what they say, into captured/.

A wrong edit is put into the student's file for the length of one command, and the file put back
whatever happens. With edits of somebody's own in steps/ it refuses."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COLUMNS = 78
sys.path.insert(0, str(HERE / "ext"))

import course_source  # noqa: E402, which lies there


def refresh(names):
    captures = yaml.safe_load((HERE / "captures.yaml").read_text())
    unknown = set(names) - set(captures)
    if unknown:
        sys.exit(f"error: captures.yaml has no {', '.join(sorted(unknown))}")
    if subprocess.run([ROOT / "workbook", "render", "--check"], capture_output=True).returncode != 0:
        sys.exit("error: steps/ holds edits, which --refresh would have to touch. Fix: do it in a fresh clone.")
    for name in names or captures:
        text = output_of(captures[name])
        (HERE / "captured").mkdir(exist_ok=True)
        (HERE / "captured" / f"{name}.txt").write_text(text)
        print(f"{name}: {len(text.splitlines())} lines", flush=True)
    return 0


def output_of(entry):
    number = re.search(r"(?:check|run) (\d\d)", entry["command"])[1]
    with edited(number, entry):
        text = said_on_terminal(entry.get("run", entry["command"]))
    # Progress lines are overwritten on a terminal: what stays is what follows the last return.
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
    # How long it took differs every time, and is nobody's concern.
    lines = [line for line in lines if not re.fullmatch(r"  (judging|the check of|building) .*: done \(.*\)", line)]
    # A terminal breaks a line that is too long; here it breaks between words.
    lines = [part for line in lines for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""]]
    return "\n".join(lines).strip("\n") + "\n"


def said_on_terminal(command):
    """What a command says on a terminal that is as wide as large type on a slide allows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    process = subprocess.Popen(command, shell=True, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                               env=os.environ | {"NO_COLOR": "1"})
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # which is how a terminal says that nobody writes any more
        while part := os.read(ours, 65536):
            said += part
    process.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode()).replace("\r\n", "\n")


@contextlib.contextmanager
def edited(number, entry):
    """The step's files as the entry says, for a while."""
    if "wrong" not in entry and "solved" not in entry:
        yield
        return
    step = next(folder.name for folder in (ROOT / "solutions").iterdir() if folder.name.startswith(number))
    texts = {}
    if "wrong" in entry:
        file, _ = course_source.file_of(int(entry["wrong"].split("/")[0]))
        texts[ROOT / file] = wrong_text(entry["wrong"])
    else:
        for file in solved_files(step):
            folder = ROOT / "sbatch" if file.suffix == ".sbatch" else ROOT / "steps" / step
            texts[folder / file.name] = file.read_text()
    kept = {file: file.read_bytes() for file in texts}
    try:
        for file, text in texts.items():
            file.write_text(text.replace(f"solution_{number}", f"step_{number}"))
        yield
    finally:
        for file, text in kept.items():
            file.write_bytes(text)


def solved_files(step):
    """The files of a solution in which students work: the job script, or those of the program."""
    files = sorted((ROOT / "solutions" / step).iterdir())
    return [file for file in files if file.suffix == ".sbatch"] or files


def wrong_text(wrong):
    """The whole file that a wrong edit of the catalogue, TODO/name, makes of its step's solution."""
    number, name = wrong.split("/")
    command = [ROOT / "workbook", "verify", "--print", "--todo", number, name]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if printed.returncode != 0:
        sys.exit(f"error: no text for the wrong edit {wrong}")
    return printed.stdout
