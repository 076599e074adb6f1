"""The vision transformer in Python, as the tutorial "Deep Learning at Scale" of NERSC writes it:
what a small one computes in fp64, as lists of numbers in JSON. Parameters and inputs are sines, so
that both sides make the same ones."""
import json

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.proj = (nn.Linear(size, size) for _ in range(4))

    def forward(self, x):
        samples, tokens, size = x.shape
        q, k, v = (f(x).reshape(samples, tokens, self.heads, size // self.heads).permute(0, 2, 1, 3)
                   for f in (self.q, self.k, self.v))
        weights = ((q @ k.transpose(-2, -1)) * (size // self.heads) ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(samples, tokens, size))


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size, eps=1e-6), nn.LayerNorm(size, eps=1e-6)
        self.attn = Attention(size, heads)
        self.fc1, self.fc2 = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class VisionTransformer(nn.Module):
    def __init__(self, grid, patch, channels, size, layers, heads):
        super().__init__()
        self.grid, self.patch, self.channels = grid, patch, channels
        self.patch_embed = nn.Conv2d(channels, size, patch, patch)
        self.pos_embed = nn.Parameter(torch.zeros(1, grid[0] // patch * (grid[1] // patch), size))
        self.blocks = nn.ModuleList(Block(size, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.head = nn.Linear(size, channels * patch * patch, bias=False)

    def forward(self, x):
        tokens = self.patch_embed(x).flatten(2).transpose(1, 2) + self.pos_embed
        for block in self.blocks:
            tokens = block(tokens)
        h, w, p = self.grid[0] // self.patch, self.grid[1] // self.patch, self.patch
        tokens = self.head(self.norm(tokens)).reshape(len(x), h, w, p, p, self.channels)
        return torch.einsum("nhwpqc->nchpwq", tokens).reshape(len(x), self.channels, *self.grid)


def sines(shape, phase):
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=torch.float64) * 0.7 + phase).reshape(shape)


model = VisionTransformer((8, 12), 4, 3, 12, 2, 3).double()
with torch.no_grad():
    for name, parameter in sorted(model.named_parameters()):
        parameter.copy_(0.3 * sines(parameter.shape, len(name)))
inputs, targets = sines((2, 3, 8, 12), 1.0), sines((2, 3, 8, 12), 2.0)
output = model(inputs)
loss = ((output - targets).flatten(1).norm(dim=1) / targets.flatten(1).norm(dim=1)).mean()
loss.backward()

# The tutorial's latitudes and weights; the square of its error, whose root it takes a sample.
latitudes = torch.deg2rad(90 - torch.arange(8, dtype=torch.float64) * 180 / 7)
weights = (8 * torch.cos(latitudes) / torch.cos(latitudes).sum()).reshape(1, 8, 1)
squares = (weights * (output - targets)[:, 0] ** 2).mean(dim=(-1, -2))

print(json.dumps({
    "output": output.flatten().tolist(), "loss": loss.item(), "squares": squares.tolist(),
    "gradients": {name: p.grad.flatten().tolist() for name, p in model.named_parameters()}}))
