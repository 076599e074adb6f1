"""The model of fsdp_time under PyTorch's fully_shard (FSDP2), for fsdp_time's figures to stand beside.

    torchrun --nproc-per-node=2 fsdp_peer.py [MODE...]

Modes: eager, prefetch (two gathers ahead), no-reshard, compiled (each block); none: all. Prints one JSON
object a line: milliseconds a step, the median of --windows times --steps steps with the least and the
greatest, peak memory of the fullest rank, and the last step's loss.
"""

import argparse
import gc
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

# compiled, reshard after forward, gathers ahead (0: as fully_shard does by itself)
MODES = {
    "eager": (False, True, 0),
    "prefetch": (False, True, 2),
    "no-reshard": (False, False, 0),
    "compiled": (True, True, 0),
}


class Layer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.norm1, self.norm2 = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.projections, self.output = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.linear1, self.linear2 = nn.Linear(a.width, a.inner), nn.Linear(a.inner, a.width)

    def forward(self, x):
        batch, sequence, width = x.shape
        projected = self.projections(self.norm1(x)).view(batch, sequence, 3, self.heads, width // self.heads)
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embedding = nn.Embedding(a.vocabulary, a.width)
        self.positions = nn.Parameter(torch.zeros(a.sequence, a.width))
        self.layers = nn.ModuleList(Layer(a) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width)
        self.head = nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def make_step(mode, a, device):
    compiled, reshard, ahead = MODES[mode]
    torch.manual_seed(0)
    with device:
        model = Gpt(a)
    # Without bf16 nothing is converted, as in fsdp_time.
    bf16 = a.precision == "bf16"
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if bf16 else MixedPrecisionPolicy()
    for layer in model.layers:
        if compiled:
            layer.compile()
        fully_shard(layer, mp_policy=policy, reshard_after_forward=reshard)
    fully_shard(model, mp_policy=policy, reshard_after_forward=reshard)
    if ahead:
        layers = list(model.layers)
        for i, layer in enumerate(layers):
            layer.set_modules_to_forward_prefetch(layers[i + 1:i + 1 + ahead])
            layer.set_modules_to_backward_prefetch(layers[max(0, i - ahead):i][::-1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.rate, fused=device.type == "cuda")
    generator = torch.Generator(device=device).manual_seed(1 + dist.get_rank())
    batches = torch.randint(a.vocabulary, (8, a.batch, a.sequence + 1), device=device, generator=generator)

    def step(number):
        batch = batches[number % len(batches)]
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def measure(step, a, device):
    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize()

    number, times, loss = 0, [], None
    for _ in range(a.warm_up):
        step(number)
        number += 1
    wait()
    dist.barrier()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    for _ in range(a.windows):
        start = time.perf_counter()
        for _ in range(a.steps):
            loss = step(number)
            number += 1
        wait()
        times.append((time.perf_counter() - start) / a.steps * 1e3)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    facts = torch.tensor([peak / 2**30, loss.item()], dtype=torch.float64, device=device)
    dist.all_reduce(facts[:1], dist.ReduceOp.MAX)
    dist.all_reduce(facts[1:])
    return times, facts[0].item(), facts[1].item() / dist.get_world_size()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES))
    sizes = dict(width=2048, layers=16, heads=16, inner=8192, vocabulary=32768, sequence=2048, batch=4,
                 steps=10, windows=5, warm_up=8)
    for name, default in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    a = parser.parse_args()
    if unknown := set(a.modes) - set(MODES):
        parser.error(f"unknown mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    for mode in a.modes or MODES:
        torch._dynamo.reset()
        times, peak, loss = measure(make_step(mode, a, device), a, device)
        middle = statistics.median(times)
        if dist.get_rank() == 0:
            print(json.dumps({"name": mode, "ranks": dist.get_world_size(), "step_ms": middle, "least_ms": min(times),
                              "most_ms": max(times), "peak_gib": peak, "loss": loss,
                              "tokens_per_s": dist.get_world_size() * a.batch * a.sequence / middle * 1e3}), flush=True)
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
