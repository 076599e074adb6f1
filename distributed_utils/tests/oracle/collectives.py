"""Runs collectives on three ranks and writes every rank's results as safetensors (by hand: the
package need not be there)."""
import json
import os
import struct
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD = 3


def make_input(rank, dtype=torch.float64):
    return (torch.arange(30, dtype=torch.float64).view(6, 5) * (rank + 1) + 7 * rank).to(dtype)


def run(rank, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    results = {}
    for op in ("SUM", "AVG", "MIN", "MAX"):
        for dtype, bits in ((torch.float64, 64), (torch.float32, 32)):
            value = make_input(rank, dtype)
            dist.all_reduce(value, getattr(dist.ReduceOp, op))
            results[f"all_reduce.{op}{bits}"] = value
    gathered = [torch.empty(6, 5, dtype=torch.float64) for _ in range(WORLD)]
    dist.all_gather(gathered, make_input(rank))
    results["all_gather"] = torch.stack(gathered)
    value = make_input(rank)
    dist.broadcast(value, 1)
    results["broadcast"] = value
    value = make_input(rank)
    dist.reduce(value, 1)
    results["reduce"] = value
    torch.save(results, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        raw = bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())
        dtype = {torch.float64: "F64", torch.float32: "F32"}[tensor.dtype]
        header[name] = dict(dtype=dtype, shape=list(tensor.shape), data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # Forked, because each new Python would load torch again.
        mp.start_processes(run, (folder,), nprocs=WORLD, start_method="fork")
        tensors = {}
        for rank in range(WORLD):
            for name, tensor in torch.load(f"{folder}/{rank}.pt", weights_only=True).items():
                tensors[f"{name}.{rank}"] = tensor
        write(sys.argv[1], tensors)
    print("true")
