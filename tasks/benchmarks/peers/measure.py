"""What the peers have in common: options, and how a training loop is timed."""

import argparse
import json
import statistics
import time

import torch


def parser(description, batch):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", required=True, help="the folder that our task reads")
    made.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="bf16")
    made.add_argument("--compile", choices=["none", "default", "reduce-overhead", "max-autotune"], default="none")
    numbers = dict(batch=batch, workers=0, threads=0, steps=20, windows=5, warm_up=40)
    helps = dict(workers="processes that load", threads="of this process; 0: as torch chooses",
                 steps="of a window", windows="timed", warm_up="steps before them")
    for name, default in numbers.items():
        made.add_argument("--" + name.replace("_", "-"), type=int, default=default,
                          help=f"{helps.get(name, 'samples of a step')} ({default})")
    return made


def prepare(a):
    """Sets what is global, and returns the device."""
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest" if a.precision == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = a.precision != "fp32"
    torch.backends.cudnn.benchmark = True
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def compiled(function, a):
    if a.compile == "none":
        return function
    return torch.compile(function, mode=None if a.compile == "default" else a.compile)


def autocast(device, a):
    return torch.autocast(device.type, torch.bfloat16, enabled=a.precision == "bf16")


def loader(dataset, a, device, **more):
    """Shuffles, and drops what fills no batch, as our trainers do."""
    if a.workers:
        more |= dict(persistent_workers=True, prefetch_factor=2)
    return torch.utils.data.DataLoader(dataset, a.batch, shuffle=True, drop_last=True, num_workers=a.workers,
                                       pin_memory=device.type == "cuda", **more)


def endless(batches):
    while True:
        yield from batches


def run(name, a, device, batches, step):
    """Takes steps and prints one JSON object: samples a second, and the share of time without a batch."""

    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize()

    source = endless(batches)

    def take(steps):
        waited = 0.0
        for _ in range(steps):
            asked = time.perf_counter()
            batch = next(source)
            waited += time.perf_counter() - asked
            step(batch)
        return waited

    take(a.warm_up)
    rates, waits = [], []
    for _ in range(a.windows):
        wait()
        start = time.perf_counter()
        waited = take(a.steps)
        wait()
        taken = time.perf_counter() - start
        rates.append(a.steps * a.batch / taken)
        waits.append(waited / taken)
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0
    print(json.dumps({"name": name, "precision": a.precision, "compile": a.compile, "workers": a.workers,
                      "samples_per_s": statistics.median(rates), "least": min(rates), "most": max(rates),
                      "data_share": statistics.median(waits), "peak_gib": memory}), flush=True)
