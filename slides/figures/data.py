"""The numbers that figures draw: the tables in slides/data. Lines that begin with # say how they were measured."""

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data"


def rows(name):
    """The rows of data/NAME.csv, by the names of its columns."""
    lines = (FOLDER / f"{name}.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
