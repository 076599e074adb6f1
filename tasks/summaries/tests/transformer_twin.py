"""The encoder-decoder in both styles, written out in plain torch, with random weights: writes weights,
inputs, logits, loss and gradients as safetensors (by hand: the package need not be there), and the
T5 alone, as Hugging Face's files name and store it.

Arguments: own|t5, the file for all that, the file for the weights alone."""
import json
import math
import struct
import sys

import torch

VOCABULARY, WIDTH, HEADS, HEAD, INNER, LAYERS, SOURCE, TARGET = 23, 12, 3, 5, 17, 2, 150, 7
PAD = 0


def write(path, tensors):
    header, data = {}, b""
    names = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64"}
    for name, tensor in tensors.items():
        value = tensor.detach().contiguous()
        array = value.numpy().tobytes()
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(array)]}
        data += array
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def make_weights(t5):
    shapes = {"shared": (VOCABULARY, WIDTH)}

    def linear(name, out, given):
        shapes[name] = (out, given)

    def attention(name):
        for part in "qkv":
            linear(f"{name}.{part}", HEADS * HEAD, WIDTH)
        linear(f"{name}.o", WIDTH, HEADS * HEAD)

    for stack in ("encoder", "decoder"):
        for block in range(LAYERS):
            layer = f"{stack}.block.{block}.layer"
            parts = ["SelfAttention", "EncDecAttention", "DenseReluDense"]
            if stack == "encoder":
                parts.remove("EncDecAttention")
            for place, part in enumerate(parts):
                if part == "DenseReluDense":
                    linear(f"{layer}.{place}.{part}.wi", INNER, WIDTH)
                    linear(f"{layer}.{place}.{part}.wo", WIDTH, INNER)
                else:
                    attention(f"{layer}.{place}.{part}")
                shapes[f"{layer}.{place}.layer_norm"] = (WIDTH,)
        if t5:
            shapes[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias"] = (32, HEADS)
        shapes[f"{stack}.final_layer_norm"] = (WIDTH,)
    torch.manual_seed(5)
    weights = {}
    for name, shape in shapes.items():
        norm = len(shape) == 1
        weights[name + ".weight"] = torch.rand(shape, dtype=torch.float64) + 0.5 if norm \
            else torch.randn(shape, dtype=torch.float64) * 0.4
        unbiased = name == "shared" or name.endswith(".k")
        if not t5 and not unbiased:
            weights[name + ".bias"] = torch.randn(shape[0], dtype=torch.float64) * 0.2
    for weight in weights.values():
        weight.requires_grad_()
    return weights


def bucket(distance, both_ways):
    """One distance from a query to a key, as T5's code has it: logarithms in fp32."""
    buckets, start = 32, 0
    if both_ways:
        buckets = 16
        start = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return start + distance
    beyond = torch.log(torch.tensor(distance).float() / exact) / math.log(128 / exact) * (buckets - exact)
    return start + min(exact + int(beyond), buckets - 1)


class Twin:
    def __init__(self, weights, t5):
        self.w, self.t5 = weights, t5

    def linear(self, name, x):
        y = x @ self.w[name + ".weight"].T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def norm(self, name, x):
        if self.t5:
            return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * self.w[name + ".weight"]
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred / (variance + 1e-6).sqrt() * self.w[name + ".weight"] + self.w[name + ".bias"]

    def attention(self, name, x, memory, mask, bias):
        def heads(part, y):
            return self.linear(f"{name}.{part}", y).view(*y.shape[:2], HEADS, HEAD).transpose(1, 2)
        scores = heads("q", x) @ heads("k", memory).transpose(-1, -2)
        if not self.t5:
            scores = scores / math.sqrt(HEAD)
        scores = (scores + bias).masked_fill(~mask, -math.inf)
        mixed = scores.softmax(-1) @ heads("v", memory)
        return self.linear(f"{name}.o", mixed.transpose(1, 2).flatten(2))

    def bias(self, stack, length):
        if not self.t5:
            return 0
        table = self.w[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        both_ways = stack == "encoder"
        buckets = [[bucket(key - query, both_ways) for key in range(length)] for query in range(length)]
        return table[torch.tensor(buckets)].permute(2, 0, 1)

    def embed(self, words):
        x = self.w["shared.weight"][words]
        if self.t5:
            return x
        positions = torch.zeros(words.shape[1], WIDTH, dtype=torch.float64)
        for position in range(words.shape[1]):
            for column in range(WIDTH):
                angle = position / 10000 ** ((column - column % 2) / WIDTH)
                positions[position, column] = math.cos(angle) if column % 2 else math.sin(angle)
        return x * math.sqrt(WIDTH) + positions

    def stack(self, name, words, memory, memory_mask):
        x, length = self.embed(words), words.shape[1]
        mask = memory_mask if memory is None else torch.ones(length, length).tril().bool()
        bias = self.bias(name, length)
        for block in range(LAYERS):
            layer, place = f"{name}.block.{block}.layer", 0
            y = self.norm(f"{layer}.0.layer_norm", x)
            x = x + self.attention(f"{layer}.0.SelfAttention", y, y, mask, bias)
            if memory is not None:
                place = 1
                y = self.norm(f"{layer}.1.layer_norm", x)
                x = x + self.attention(f"{layer}.1.EncDecAttention", y, memory, memory_mask, 0)
            place += 1
            y = self.linear(f"{layer}.{place}.DenseReluDense.wi", self.norm(f"{layer}.{place}.layer_norm", x))
            x = x + self.linear(f"{layer}.{place}.DenseReluDense.wo", y.clamp(min=0))
        return self.norm(f"{name}.final_layer_norm", x)

    def __call__(self, documents, told):
        mask = (documents != PAD)[:, None, None, :]
        memory = self.stack("encoder", documents, None, mask)
        x = self.stack("decoder", told, memory, mask)
        if self.t5:
            x = x * WIDTH ** -0.5
        return x @ self.w["shared.weight"].T


def main():
    t5 = sys.argv[1] == "t5"
    weights = make_weights(t5)
    documents = torch.randint(3, VOCABULARY, (3, SOURCE))
    documents[1, 90:] = PAD
    documents[2, 4:] = PAD
    targets = torch.randint(3, VOCABULARY, (3, TARGET))
    targets[1, 5:] = PAD
    targets[2, 1:] = PAD
    told = torch.zeros_like(targets)
    told[:, 1:] = targets[:, :-1]
    logits = Twin(weights, t5)(documents, told)
    nats = -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    loss = nats[targets != PAD].sum()
    loss.backward()
    everything = {"documents": documents, "told": told, "targets": targets, "logits": logits, "loss": loss}
    for name, weight in weights.items():
        everything["weight:" + name] = weight
        everything["gradient:" + name] = weight.grad
    write(sys.argv[2], everything)
    # The embedding is in Hugging Face's files up to four times.
    copies = {name: weights["shared.weight"] for name in
              ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")}
    write(sys.argv[3], {**weights, **copies})
    print(json.dumps({"count": int((targets != PAD).sum())}))


main()
