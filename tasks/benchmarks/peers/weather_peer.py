"""The weather's training (tasks/weather, configuration bs16) as a careful user of Python writes it.

    python3 weather_peer.py --data FOLDER --workers 8 [--compile default]

Worker processes read both time steps of a sample at once by h5py; the GPU normalises them.
"""

import pathlib

import h5py
import numpy
import torch
import torch.nn.functional as F
from torch import nn

import measure


class Fields(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.h5"))
        self.opened = {}
        self.places = []
        for number, file in enumerate(self.files):
            with h5py.File(file, "r") as opened:
                times, *self.shape = opened["fields"].shape
            self.places += [(number, time) for time in range(times - 1)]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        number, time = self.places[index]
        if number not in self.opened:  # in each worker
            self.opened[number] = h5py.File(self.files[number], "r")["fields"]
        return torch.from_numpy(self.opened[number][time:time + 2])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.projections, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        projected = self.projections(self.norm1(x)).view(batch, tokens, 3, self.heads, -1)
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(queries, keys, values)
        x = x + self.output(attended.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.outer(F.gelu(self.inner(self.norm2(x))))


class VisionTransformer(nn.Module):
    def __init__(self, channels, height, width, a):
        super().__init__()
        self.patch, self.channels = a.patch, channels
        self.patches = nn.Conv2d(channels, a.embedding, a.patch, a.patch)
        tokens = (height // a.patch) * (width // a.patch)
        self.positions = nn.Parameter(torch.randn(1, tokens, a.embedding) * 0.02)
        self.blocks = nn.Sequential(*(Block(a.embedding, a.heads) for _ in range(a.layers)))
        self.norm = nn.LayerNorm(a.embedding, 1e-6)
        self.head = nn.Linear(a.embedding, channels * a.patch**2, bias=False)

    def forward(self, fields):
        tokens = self.patches(fields).flatten(2).transpose(1, 2) + self.positions
        rows, p = fields.shape[2] // self.patch, self.patch
        patches = self.head(self.norm(self.blocks(tokens))).view(len(fields), rows, -1, p, p, self.channels)
        return patches.permute(0, 5, 1, 3, 2, 4).reshape(fields.shape)


def main():
    parser = measure.parser(__doc__, batch=16)
    for name, default in dict(patch=8, embedding=384, heads=8, layers=12).items():
        parser.add_argument("--" + name, type=int, default=default)
    a = parser.parse_args()
    device = measure.prepare(a)
    folder = pathlib.Path(a.data)
    fields = Fields(folder / "train")
    model = VisionTransformer(*fields.shape, a).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 5e-4, (0.9, 0.95), fused=True)
    mean, deviation = (torch.from_numpy(numpy.load(folder / "stats" / f"global_{name}.npy")).float().to(device)
                       for name in ("means", "stds"))

    def loss_of(both):
        now, later = ((both[:, time] - mean) / deviation for time in (0, 1))
        error = model(now).float() - later
        return (error.flatten(1).norm(dim=1) / later.flatten(1).norm(dim=1)).mean()

    forward = measure.compiled(loss_of, a)

    def step(batch):
        both = batch.to(device, non_blocking=True)
        optimizer.zero_grad()
        with measure.autocast(device, a):
            loss = forward(both)
        loss.backward()
        optimizer.step()

    measure.run("weather", a, device, measure.loader(fields, a, device), step)


if __name__ == "__main__":
    main()
