"""Trains a model with BatchNorm under DistributedDataParallel on two ranks over Gloo. Prints, of each
rank and step, the running statistics and the number of batches, then what each evaluates to."""
import contextlib
import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD = 2


def rows(rank, step):
    return (torch.arange(5 * 3, dtype=torch.float64).view(5, 3) * (1 + 0.1 * rank) * (step + 1)).sin() + rank


def make_model():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2, bias=False), torch.nn.BatchNorm1d(2)).double()
    with torch.no_grad():
        model[0].weight.copy_((torch.arange(6, dtype=torch.float64).view(2, 3) + 1).cos())
    return model


def run(rank, folder, kinds):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    model = make_model()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    batch_norm, results = model[1], []
    for step, kind in enumerate(kinds):
        if kind == "evaluate":  # alone, as ranks with validation sets of different length do
            ddp.eval()
            with torch.no_grad():
                model(rows(rank, step))
            ddp.train()
        else:
            with ddp.no_sync() if kind == "no_sync" else contextlib.nullcontext():
                ddp(rows(rank, step)).pow(3).mean().backward()
            if kind == "step":
                optimizer.step()
                optimizer.zero_grad()
        results.append(
            dict(
                mean=batch_norm.running_mean.tolist(),
                var=batch_norm.running_var.tolist(),
                batches=batch_norm.num_batches_tracked.item(),
            )
        )
    ddp.eval()
    with torch.no_grad():
        own = model(rows(0, 99)).tolist()
        common = ddp(rows(0, 99)).tolist()  # the first one gives all ranks rank 0's buffers
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump(dict(steps=results, own=own, common=common), file)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # Forked, because each new Python would load torch again.
        mp.start_processes(run, (folder, sys.argv[1:]), nprocs=WORLD, start_method="fork")
        print(json.dumps([json.load(open(f"{folder}/{rank}.json")) for rank in range(WORLD)]))
