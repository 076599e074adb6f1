"""Trains images, weather and summaries, ours and Python's by turns, and prints how fast each was.

    python3 tasks/benchmarks/tasks_on_gpu.py [TASK...]      after ./workbook build --cuda solution_09

Ours is the trainer that users run, with its own monitor; the peers are in peers/. Both read the same files, and
both figures are of windows of steps behind a warm-up, in the middle of an epoch. --tiny tries everything on a CPU,
with models that are not the same: its figures compare nothing.
"""

import argparse
import csv
import functools
import importlib.util
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

# Steps of warm-up and of each of five windows fit into one epoch. `tiny`: for CPUs; the first part is a configuration
# of ours, the second a peer's options.
TASKS = {
    "images": dict(config="gpu", batch=64, warm_up=38, steps=20, workers=14, copies=1,
                   variants={"ours, decoded once": "keep_decoded: true\n"},
                   peers=[["--channels-last"], ["--channels-last", "--compile=default"],
                          ["--channels-last", "--compile=reduce-overhead"],
                          *(["--channels-last", f"--workers={workers}"] for workers in (4, 8, 16))],
                   tiny=("base: laptop\nepochs: 2\ntrain_pictures: 80\nevaluation_pictures: 8\nwidth: 8\n",
                         ["--side=48", "--width=8"])),
    "weather": dict(config="bs16", batch=16, warm_up=19, steps=12, workers=8, copies=10,
                    peers=[[], ["--compile=default"], ["--compile=reduce-overhead"], ["--workers=4"], ["--workers=16"]],
                    tiny=("base: laptop\nepochs: 1\nplanet_steps: 25\nplanet_held_out: 3\nembedding: 16\nlayers: 1\n",
                          ["--patch=4", "--embedding=16", "--heads=4", "--layers=1"])),
    "summaries": dict(config="t5", batch=16, warm_up=98, steps=20, workers=2, copies=1,
                      peers=[[], ["--compile=default"], ["--compile=reduce-overhead"]],
                      tiny=("base: t5\nepochs: 1\nwidth: 16\nheads: 2\nhead_width: 8\nfeed_forward: 64\n"
                            "encoder_layers: 1\ndecoder_layers: 1\nvocabulary_size: 500\n",
                            ["--width=16", "--heads=2", "--layers=1", "--vocabulary=500"])),
}

COURSE_PAIRS = 15000  # that the course which this one follows trains T5 on


def environment(a):
    """Where the libraries of ours are, also where it was built on another machine."""
    found = importlib.util.find_spec("torch")
    packages = pathlib.Path(found.origin).parent.parent
    places = [a.build / "lib", packages / "torch" / "lib", *packages.glob("nvidia/*/lib"), a.build / "libraries"]
    known = os.environ.get("LD_LIBRARY_PATH", "")
    return os.environ | {"LD_LIBRARY_PATH": ":".join([*map(str, places), known]), "WORLDSIZE_CACHE": str(a.cache)}


class Failed(Exception):
    pass


def call(command, environment, seconds=400):
    """What a program printed. Throws Failed with its last lines."""
    command = [*map(str, command)]
    try:
        done = subprocess.run(command, env=environment, timeout=seconds, capture_output=True, text=True)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{' '.join(command)}\nhas not ended in {seconds} s") from late
    if done.returncode:
        raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def write_documents(folder, documents):
    """Pairs as long as XSum's (431 words and 23, Narayan et al. 2018), of words as frequent as Zipf has them."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(0)
    words = [f"w{i}" for i in range(30000)]
    weights = [1 / (i + 10) for i in range(len(words))]
    for split, count in (("train", documents), ("validation", 16), ("test", 16)):
        with open(folder / f"{split}.jsonl", "w", encoding="utf-8") as file:
            for i in range(count):
                lengths = max(20, int(draw.lognormvariate(5.93, 0.52))), max(6, int(draw.gauss(23, 5)))
                document, summary = (" ".join(draw.choices(words, weights, k=length)) for length in lengths)
                file.write(json.dumps({"document": document, "summary": summary, "id": str(i)}) + "\n")


def make_data(task, what, a):
    """The folder that both read. Trainers make what is built in when they first run."""
    if task == "summaries":
        folder = a.cache / f"documents-{a.batch_of(what) * a.steps_of(what)}"
        if not folder.exists():
            write_documents(folder, a.batch_of(what) * (a.steps_of(what) + 2))
        return folder
    before = set(a.cache.iterdir())
    call([a.build / "bin" / "solution_09", "--task", task, "--config", a.config_of(task, what), "--max-steps", 1,
          "--output", a.cache / "first"], environment(a))
    pattern = "breeds-*" if task == "images" else "weather-*"
    made = [entry for entry in a.cache.glob(pattern) if entry.is_dir() and (entry / "train").is_dir()]
    new = [entry for entry in made if entry not in before] or made
    folder = max(new, key=lambda entry: entry.stat().st_mtime)
    return several_times(folder, what["copies"], a) if what["copies"] > 1 else folder


def several_times(folder, copies, a):
    """The same files under several names, so that an epoch is long enough to time."""
    there = a.cache / f"{copies}-times-{folder.name}"
    if there.exists():
        return there
    for part in ("valid", "test", "stats"):
        there.mkdir(exist_ok=True)
        (there / part).symlink_to(folder / part)
    (there / "train").mkdir()
    for file in sorted((folder / "train").iterdir()):
        for copy in range(copies):
            (there / "train" / f"{file.stem}-{copy}{file.suffix}").symlink_to(file)
    return there


def run_ours(task, what, data, *, more, a):
    """Samples a second of each window, and the share of the training thread's time that went into batches."""
    # What is decoded once is decoded in the first epoch.
    skipped = sum(1 for _ in data.glob("train/*/*")) // a.batch_of(what) if more else 0
    output = a.cache / f"run-{task}-{time.monotonic_ns()}"
    call([a.build / "bin" / "solution_09", "--task", task, "--config", a.config_of(task, what, more), "--data", data,
          "--precision", a.precision, "--batch-size", a.batch_of(what), "--max-steps", skipped + a.steps_of(what) + 1,
          "--fast", "--monitor", "--output", output], environment(a))
    call([a.build / "bin" / "checker", "monitor", output, "--csv", output / "csv"], environment(a))
    (table,) = output.glob("csv/**/steps.csv")
    rows = list(csv.DictReader(open(table)))[skipped:]
    shutil.rmtree(output)  # models and monitors of all rounds would fill a disk
    rates, shares = [], []
    for first in range(what["warm_up"], a.steps_of(what), what["steps"]):
        window = rows[first:first + what["steps"]]
        taken = float(rows[first + what["steps"]]["begin"]) - float(window[0]["begin"])
        rates.append(len(window) * a.batch_of(what) / taken)
        shares.append(sum(float(row["data"]) for row in window) / taken)
    return rates, shares


def run_peer(task, what, data, *, options, a):
    said = call([sys.executable, HERE / "peers" / f"{task}_peer.py", "--data", data, "--precision", a.precision,
                 "--batch", a.batch_of(what), "--workers", a.workers if a.workers is not None else what["workers"],
                 "--warm-up", what["warm_up"], "--steps", what["steps"], "--windows", 5,
                 *options, *(what["tiny"][1] if a.tiny else [])], os.environ)
    result = json.loads(said.strip().splitlines()[-1])
    return [result["least"], result["samples_per_s"], result["most"]], [result["data_share"]]


def measure(task, a):
    what = dict(TASKS[task])
    if a.tiny:
        what |= dict(batch=2, warm_up=2, steps=3, workers=1, copies=min(what["copies"], 2), peers=what["peers"][:1])
    began = time.monotonic()
    data = make_data(task, what, a)
    print(f"{task}: data in {data} ({time.monotonic() - began:.0f} s)", flush=True)
    peers = what["peers"] + ([what["peers"][0] + ["--compile=max-autotune"]] if a.max_autotune else [])
    runs = {name: functools.partial(run_ours, more=more)
            for name, more in ({"ours": ""} | what.get("variants", {})).items()}
    runs |= {" ".join(["Python", *options]): functools.partial(run_peer, options=options) for options in peers}
    results = {}
    for number in range(a.rounds):
        for name, run in runs.items():
            if time.monotonic() - began > a.seconds:
                break
            try:
                rates, shares = run(task, what, data, a=a)
            except Failed as failure:
                print(f"  {name}: {failure}", flush=True)
                continue
            results.setdefault(name, []).append((rates, statistics.median(shares)))
            print(f"  round {number + 1}, {name}: {statistics.median(rates):.1f} samples/s", flush=True)
    return results


def show(task, results, a):
    if a.tiny:
        print("\n--tiny: these figures compare nothing", end="")
    print(f"\n{task}, {a.precision}: samples/s, the median of {a.rounds} rounds' medians, [least, most] of all windows")
    for name, rounds in results.items():
        medians = [statistics.median(rates) for rates, _ in rounds]
        every = [rate for rates, _ in rounds for rate in rates]
        print(f"  {name:48} {statistics.median(medians):9.1f}  [{min(every):.1f}, {max(every):.1f}]"
              f"  time for batches {100 * statistics.median(share for _, share in rounds):.0f} %")


class Settings(argparse.Namespace):
    def config_of(self, task, what, more=""):
        if not self.tiny and not more:
            return what["config"]
        file = self.cache / f"{task}.yaml"
        file.write_text((what["tiny"][0] if self.tiny else f"base: {what['config']}\n") + more)
        return file

    def batch_of(self, what):
        return self.batch or what["batch"]

    def steps_of(self, what):
        return what["warm_up"] + 5 * what["steps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "cuda")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("/tmp/tasks-on-gpu"), help="for data")
    parser.add_argument("--output", type=pathlib.Path, help="a JSON file for all figures")
    parser.add_argument("--precision", default="bf16", help="fp32, tf32 or bf16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=400, help="after which a task begins nothing more")
    parser.add_argument("--batch", type=int, help="samples of a step")
    parser.add_argument("--workers", type=int, help="of the peers")
    parser.add_argument("--max-autotune", action="store_true", help="also that, which compiles for minutes")
    parser.add_argument("--write-documents", type=pathlib.Path, metavar="FOLDER",
                        help="instead: write 15,000 pairs as long as XSum's, for summaries")
    parser.add_argument("--tiny", action="store_true", help="small models and data, for a CPU")
    a = parser.parse_args(namespace=Settings())
    if unknown := set(a.tasks) - set(TASKS):
        parser.error(f"unknown task {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}")
    if a.write_documents:
        write_documents(a.write_documents, COURSE_PAIRS)
        print(json.dumps({"pairs": COURSE_PAIRS}))
        return
    a.build, a.cache = a.build.resolve(), a.cache.resolve()
    a.cache.mkdir(parents=True, exist_ok=True)
    try:
        every = {task: measure(task, a) for task in a.tasks or TASKS}
    except Failed as failure:  # there are no data
        sys.exit(str(failure))
    for task, results in every.items():
        show(task, results, a)
    if a.output:
        a.output.write_text(json.dumps(every, indent=1))


if __name__ == "__main__":
    main()
