"""The summaries' training (tasks/summaries, configuration t5) as a careful user of Python writes it.

    python3 summaries_peer.py --data FOLDER --workers 2 [--compile default]

Rows are as long as the longest text of their batch, rounded up to a multiple of eight.
"""

import collections
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

import measure

PAD, END, UNKNOWN = 0, 1, 2


class Pairs(torch.utils.data.Dataset):
    def __init__(self, file, a):
        lines = [json.loads(line) for line in open(file, encoding="utf-8")]
        texts = [[line[name].lower().split() for name in ("document", "summary")] for line in lines]
        counts = collections.Counter(word for pair in texts for text in pair for word in text)
        ids = {word: 3 + i for i, (word, _) in enumerate(counts.most_common(a.vocabulary - 3))}
        lengths = (a.source_length, a.target_length)
        self.pairs = [[torch.tensor([ids.get(word, UNKNOWN) for word in text[:length - 1]] + [END])
                       for text, length in zip(pair, lengths)] for pair in texts]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


def padded(texts):
    length = -(-max(map(len, texts)) // 8) * 8
    return torch.stack([F.pad(text, (0, length - len(text)), value=PAD) for text in texts])


def collate(pairs):
    documents, summaries = (padded(texts) for texts in zip(*pairs))
    return documents, summaries, int((summaries != PAD).sum())


def buckets(length, both_ways, device):
    """T5's, by distance; as tasks/summaries/attention.hpp says."""
    place = torch.arange(length, device=device)
    distance = place[None] - place[:, None]
    count = 16 if both_ways else 32
    first = (distance > 0) * count if both_ways else 0
    distance = distance.abs() if both_ways else (-distance).clamp(min=0)
    exact = count // 2
    far = exact + ((distance.clamp(min=1).float() / exact).log() / math.log(128 / exact) * (count - exact)).long()
    return first + torch.where(distance < exact, distance, far.clamp(max=count - 1))


class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.norm = nn.RMSNorm(a.width, 1e-6)
        self.q, self.k, self.v, self.o = (nn.Linear(a.width, a.width, bias=False) for _ in range(4))
        nn.init.normal_(self.q.weight, std=(a.width * a.width // a.heads) ** -0.5)
        self.dropout = a.dropout

    def forward(self, x, mask, memory=None):
        normed = self.norm(x)
        memory = normed if memory is None else memory
        q, k, v = (linear(of).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for linear, of in ((self.q, normed), (self.k, memory), (self.v, memory)))
        attended = F.scaled_dot_product_attention(q, k, v, mask, self.dropout, scale=1.0)
        return x + F.dropout(self.o(attended.transpose(1, 2).flatten(2)), self.dropout)


class FeedForward(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.norm = nn.RMSNorm(a.width, 1e-6)
        self.wi = nn.Linear(a.width, 4 * a.width, bias=False)
        self.wo = nn.Linear(4 * a.width, a.width, bias=False)
        self.dropout = a.dropout

    def forward(self, x):
        inner = F.dropout(F.relu(self.wi(self.norm(x))), self.dropout)
        return x + F.dropout(self.wo(inner), self.dropout)


class Stack(nn.Module):
    def __init__(self, a, decodes):
        super().__init__()
        self.decodes, self.dropout = decodes, a.dropout
        self.bias = nn.Embedding(32, a.heads)
        self.own = nn.ModuleList(Attention(a) for _ in range(a.layers))
        self.cross = nn.ModuleList(Attention(a) for _ in range(a.layers if decodes else 0))
        self.feed = nn.ModuleList(FeedForward(a) for _ in range(a.layers))
        self.norm = nn.RMSNorm(a.width, 1e-6)

    def forward(self, x, pads, memory=None):
        length = x.shape[1]
        # Fast kernels take a bias whose rows lie in memory one after the other.
        mask = self.bias(buckets(length, not self.decodes, x.device)).permute(2, 0, 1).contiguous()[None]
        if self.decodes:
            mask = mask + torch.full((length, length), -math.inf, device=x.device).triu(1)
        else:
            mask = mask + pads
        if torch.is_autocast_enabled(x.device.type):  # once, not in each layer
            mask, pads = mask.bfloat16(), pads.bfloat16()
        x = F.dropout(x, self.dropout)
        for layer, (own, feed) in enumerate(zip(self.own, self.feed)):
            x = own(x, mask)
            if self.decodes:
                x = self.cross[layer](x, pads, memory)
            x = feed(x)
        return F.dropout(self.norm(x), self.dropout)


class T5(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.shared = nn.Embedding(a.vocabulary, a.width)
        self.encoder, self.decoder = Stack(a, decodes=False), Stack(a, decodes=True)

    def forward(self, documents, told):
        pads = torch.zeros(documents.shape, device=documents.device).masked_fill(documents == PAD, -math.inf)
        pads = pads[:, None, None]
        memory = self.encoder(self.shared(documents), pads)
        hidden = self.decoder(self.shared(told), pads, memory)
        return F.linear(hidden * hidden.shape[-1] ** -0.5, self.shared.weight)


def main():
    parser = measure.parser(__doc__, batch=16)
    sizes = dict(width=768, heads=12, layers=12, vocabulary=32128, source_length=512, target_length=150)
    for name, default in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.1)
    a = parser.parse_args()
    device = measure.prepare(a)
    model = T5(a).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)

    def loss_of(documents, summaries):
        logits = model(documents, F.pad(summaries[:, :-1], (1, 0), value=PAD))
        return F.cross_entropy(logits.float().flatten(0, 1), summaries.flatten(), ignore_index=PAD, reduction="sum")

    forward = measure.compiled(loss_of, a)

    def step(batch):
        documents, summaries = (part.to(device, non_blocking=True) for part in batch[:2])
        optimizer.zero_grad()
        with measure.autocast(device, a):
            loss = forward(documents, summaries)
        (loss / batch[2]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()

    pairs = Pairs(pathlib.Path(a.data) / "train.jsonl", a)
    measure.run("summaries", a, device, measure.loader(pairs, a, device, collate_fn=collate), step)


if __name__ == "__main__":
    main()
