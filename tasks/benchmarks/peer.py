"""The language model of the configuration `seed`, in Python, for step_time's figures to stand beside.

    python3 peer.py [MODE...]                     one GPU (or the CPU)
    torchrun --nproc-per-node=2 peer.py [MODE...] several

Modes are below; none: all. Prints one JSON object a line: milliseconds a step, the median of
--repeats times --steps steps with the least and the greatest. With --losses=N it prints the mean
loss of the last 20 of N steps instead, on the text in --text, which `step_time --text=FOLDER`
writes: the last 20 lines of `step_time --losses=FILE --steps=N` are of the same training.
"""

import argparse
import json
import os
import pathlib
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

# precision of products, fused AdamW, torch.compile's mode ("": no compilation), whole step in a CUDA graph
MODES = {
    "fp32": ("fp32", False, "", False),
    "fp32-fused": ("fp32", True, "", False),
    "tf32": ("tf32", True, "", False),
    "tf32-compiled": ("tf32", True, "default", False),
    "tf32-max-autotune": ("tf32", True, "max-autotune", False),
    "bf16": ("bf16", True, "", False),
    "bf16-compiled": ("bf16", True, "default", False),
    "bf16-reduce-overhead": ("bf16", True, "reduce-overhead", False),
    "bf16-max-autotune": ("bf16", True, "max-autotune", False),
    "bf16-graph": ("bf16", True, "", True),
    "bf16-max-autotune-graph": ("bf16", True, "max-autotune-no-cudagraphs", True),
}


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        projected = self.projections(x).view(batch, sequence, 3, self.heads, width // self.heads)
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        return self.output(attended.transpose(1, 2).reshape(batch, sequence, width))


class Layer(nn.Module):
    def __init__(self, width, heads, inner, dropout):
        super().__init__()
        self.attention = Attention(width, heads, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.linear1, self.linear2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.linear2(self.drop(F.relu(self.linear1(x))))))


def sinusoidal_positions(positions, width):
    angle = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


class LanguageModel(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embedding = nn.Embedding(a.vocabulary, a.width)
        self.register_buffer("positions", sinusoidal_positions(a.sequence, a.width))
        self.layers = nn.ModuleList(Layer(a.width, a.heads, a.inner, a.dropout) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width)
        self.decoder = nn.Linear(a.width, a.vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.decoder(self.norm(x))


def batches_of(text, a, device):
    """Every word starts a window, as in the configuration `seed`; windows come in random order."""
    lines = (pathlib.Path(text) / "train.txt").read_text().splitlines()
    words = [word for line in lines for word in [*line.split(), "<eos>"]]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokens = torch.tensor([numbers[word] for word in words], device=device)
    windows = tokens.unfold(0, a.sequence + 1, 1)
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(1)).to(device)
    return windows[order[:a.losses * a.batch]].view(a.losses, a.batch, a.sequence + 1)


def random_batches(a, device):
    generator = torch.Generator(device=device).manual_seed(1)
    return torch.randint(a.vocabulary, (50, a.batch, a.sequence + 1), device=device, generator=generator)


def make_step(mode, a, device, local_rank):
    precision, fused, compiled, graph = MODES[mode]
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.manual_seed(0)
    model = LanguageModel(a).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=fused, capturable=graph)
    if dist.is_initialized():
        model = nn.parallel.DistributedDataParallel(
            model, device_ids=[local_rank] if device.type == "cuda" else None, gradient_as_bucket_view=fused)

    def loss_of(inputs, targets):
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    forward = torch.compile(loss_of, mode=compiled) if compiled else loss_of
    batches = batches_of(a.text, a, device) if a.losses else random_batches(a, device)

    def step_on(inputs, targets):
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = forward(inputs, targets)
        loss.backward()
        optimizer.step()
        return loss

    def step(number):
        batch = batches[number % len(batches)]
        return step_on(batch[:, :-1], batch[:, 1:])

    return captured(step_on, batches) if graph else step


def captured(step_on, batches):
    """The step as one CUDA graph, which reads the batch from tensors that stay."""
    inputs, targets = batches[0][:, :-1].clone(), batches[0][:, 1:].clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(12):
            step_on(inputs, targets)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step_on(inputs, targets)

    def step(number):
        batch = batches[number % len(batches)]
        inputs.copy_(batch[:, :-1])
        targets.copy_(batch[:, 1:])
        graph.replay()
        return loss

    return step


def measure(step, a, device):
    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize()

    for number in range(a.warm_up):
        step(number)
    times = []
    for _ in range(a.repeats):
        wait()
        start = time.perf_counter()
        for number in range(a.steps):
            step(number)
        wait()
        times.append((time.perf_counter() - start) / a.steps * 1e3)
    return times


def last_loss(step, a):
    losses = [step(number).detach().clone() for number in range(a.losses)]
    return torch.stack(losses[-20:]).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES))
    sizes = dict(vocabulary=66000, width=128, heads=4, layers=2, inner=2048, sequence=32, batch=128,
                 steps=50, repeats=9, warm_up=30, threads=0, losses=0)
    for name, default in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--text", help="a folder with train.txt, for --losses")
    a = parser.parse_args()
    if bool(a.text) != bool(a.losses):
        parser.error("--text and --losses are given together")
    if unknown := set(a.modes) - set(MODES):
        parser.error(f"unknown mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    if a.threads:
        torch.set_num_threads(a.threads)
    local_rank, world = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if world > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    # A graph needs a GPU, and DistributedDataParallel in one more preparation than a user would take on.
    graphs = device.type == "cuda" and world == 1 and not a.losses  # its warm-up trains too
    apt = [mode for mode in MODES if graphs or not MODES[mode][3]]
    for mode in a.modes or apt:
        torch._dynamo.reset()
        step = make_step(mode, a, device, local_rank)
        if a.losses:
            loss = last_loss(step, a)
            if local_rank == 0:
                print(json.dumps({"name": mode, "ranks": world, "loss": loss}), flush=True)
            continue
        times = measure(step, a, device)
        middle = statistics.median(times)
        if local_rank == 0:
            print(json.dumps({"name": mode, "ranks": world, "step_ms": middle, "least_ms": min(times),
                              "most_ms": max(times),
                              "tokens_per_s": world * a.batch * a.sequence / middle * 1e3}), flush=True)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
