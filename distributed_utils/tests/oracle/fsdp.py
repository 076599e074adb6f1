"""Trains the net of fsdp_net.hpp with PyTorch's fully_shard on three ranks and prints every rank's
losses, norms and shards. Its numbers come from formulas that fsdp_peer_test.cpp has as well."""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

WORLD, ROWS, WIDTH, STEPS = 3, 2, 5, 4


class Project(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(rows, WIDTH))

    def forward(self, x):
        return x.matmul(self.weight.t())


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, 7)
        self.down = torch.nn.Linear(7, WIDTH)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Project(WIDTH)
        self.layer0, self.layer1, self.layer2 = Layer(), Layer(), Layer()
        self.head = Project(3)
        self.scale = torch.nn.Parameter(torch.empty(1))
        self.register_buffer("shift", torch.zeros(3))

    def forward(self, x):
        x = self.layer2(self.layer1(self.layer0(self.first(x))))
        return self.head(self.layer0(x)) * self.scale + self.shift


def set_values(net):
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            numbers = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_(torch.sin(0.7 * numbers + len(name)).view(parameter.shape) / 2)


def rows_of(step, rank):
    first = (step * WORLD + rank) * ROWS * WIDTH
    numbers = torch.arange(first, first + ROWS * WIDTH, dtype=torch.float64)
    return torch.cos(1.3 * numbers).view(ROWS, WIDTH)


def train(rank, dtype, policy):
    net = Net().to(dtype)
    set_values(net)
    mesh = init_device_mesh("cpu", (WORLD,))
    for unit in (net.first, net.layer0, net.layer1, net.layer2, net.head, net):
        fully_shard(unit, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    result = {"loss": [], "norm": []}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = torch.tanh(net(rows_of(step, rank).to(policy.param_dtype or dtype)) - 1).pow(2).mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        result["loss"].append(loss.item())
        result["norm"].append(norm.to_local().item())
    for name, parameter in net.named_parameters():
        result[name] = parameter.to_local().double().flatten().tolist()
        result["gradient of " + name] = parameter.grad.to_local().double().flatten().tolist()
    return result


def run(rank, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    results = {"fp64": train(rank, torch.float64, MixedPrecisionPolicy()),
               "bf16": train(rank, torch.float32, half)}
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump(results, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # Forked, because each new Python would load torch again.
        mp.start_processes(run, (folder,), nprocs=WORLD, start_method="fork")
        print(json.dumps([json.load(open(f"{folder}/{rank}.json")) for rank in range(WORLD)]))
