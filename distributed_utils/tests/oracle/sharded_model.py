"""What torch.distributed.checkpoint makes of a sharded model, and one that it writes itself.

usage: sharded_model.py FOLDER. The folder holds "ours", a sharded model with its optimizer, and "model.safetensors" and
"optimizer.safetensors" with what must be in it. Writes "theirs" and prints by how much what was read is off; null where
the safetensors package is not installed.
"""
import json
import os
import sys
import tempfile

import torch
import torch._dynamo  # which every rank would load for itself
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

try:
    from safetensors.torch import load_file
except ImportError:
    print("null")
    sys.exit()

folder = sys.argv[1]
ours = folder + "/ours"
truth = load_file(folder + "/model.safetensors") | load_file(folder + "/optimizer.safetensors")


def off(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    return (got - wanted).abs().max().item()


def by_one_process():
    state = {name: torch.zeros_like(tensor) for name, tensor in truth.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(ours), no_dist=True)
    return max(off(state[name], truth[name]) for name in truth)


def placements(tensor):
    """Rows over the mesh's first dimension, columns over its second, so that ranks hold boxes."""
    columns = Shard(tensor.dim() - 1) if tensor.dim() > 1 else Replicate()
    return [Shard(0), columns]


def by_rank(rank, store, report):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2))
    state = {name: distribute_tensor(torch.zeros_like(tensor), mesh, placements(tensor)) if tensor.dim() > 0
             else torch.zeros_like(tensor) for name, tensor in truth.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(ours))
    worst = max(off(state[name].full_tensor() if truth[name].dim() > 0 else state[name], truth[name]) for name in truth)
    mine = {name: tensor for name, tensor in state.items() if name.startswith("box.")}
    dcp.save(mine, storage_writer=HuggingFaceStorageWriter(folder + "/theirs", save_distributed=True))
    if rank == 0:
        report.put(worst)
    dist.destroy_process_group()


def by_ranks():
    context = mp.get_context("fork")
    report = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as place:
        processes = [context.Process(target=by_rank, args=(rank, place + "/store", report)) for rank in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert all(process.exitcode == 0 for process in processes)
    return report.get()


def consolidated():
    # It computes the size of a type with torch.finfo, so it knows no whole numbers, and makes zeros of scalars.
    names = [name for name, tensor in truth.items() if tensor.is_floating_point() and tensor.dim() > 0]
    os.makedirs(folder + "/one")
    consolidate_safetensors_files(ours, folder + "/one", fqn_to_index_mapping={name: 1 for name in names})
    one = load_file(folder + "/one/model-00001-of-00001.safetensors")
    assert sorted(one) == sorted(names)
    return max(off(one[name], truth[name]) for name in names)


torch.set_num_threads(1)
print(json.dumps({"by four ranks": by_ranks(), "by one process": by_one_process(), "consolidated": consolidated()}))
