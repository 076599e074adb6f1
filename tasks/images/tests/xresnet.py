"""fastai's xresnet, written anew with torch alone, in fp64: weights, one batch, logits, gradients and
running statistics as safetensors (by hand: the package need not be there)."""
import json
import struct
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_layer(inputs, outputs, size=3, stride=1, zero=False, activation=True):
    norm = nn.BatchNorm2d(outputs)
    nn.init.constant_(norm.weight, 0.0 if zero else 1.0)
    layers = [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), norm]
    return nn.Sequential(*layers, *([nn.ReLU()] if activation else []))


class ResBlock(nn.Module):
    def __init__(self, expansion, inputs, hidden, stride):
        super().__init__()
        outputs, inputs = hidden * expansion, inputs * expansion
        if expansion == 1:
            path = [conv_layer(inputs, hidden, 3, stride), conv_layer(hidden, outputs, zero=True, activation=False)]
        else:
            path = [conv_layer(inputs, hidden, 1), conv_layer(hidden, hidden, 3, stride),
                    conv_layer(hidden, outputs, 1, zero=True, activation=False)]
        self.convpath = nn.Sequential(*path)
        identity = [nn.AvgPool2d(stride, ceil_mode=True)] if stride != 1 else []
        if inputs != outputs:
            identity.append(conv_layer(inputs, outputs, 1, activation=False))
        self.idpath = nn.Sequential(*identity)

    def forward(self, x):
        return F.relu(self.convpath(x) + self.idpath(x))


def xresnet(expansion, layers, width, classes):
    stem = [conv_layer(3, width // 2, stride=2), conv_layer(width // 2, width // 2), conv_layer(width // 2, width)]
    sizes = [width // expansion] + [width * 2**i for i in range(len(layers))]
    stages = [
        nn.Sequential(*[
            ResBlock(expansion, sizes[i] if j == 0 else sizes[i + 1], sizes[i + 1], 2 if i > 0 and j == 0 else 1)
            for j in range(count)
        ]) for i, count in enumerate(layers)
    ]
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.0),
                         nn.Linear(sizes[-1] * expansion, classes))


def save(tensors, path):
    header, data = {}, bytearray()
    for name, tensor in tensors.items():
        kind = {torch.float64: "F64", torch.int64: "I64"}[tensor.dtype]
        array = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(array)]}
        data += array
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.write(data)


def main():
    path, expansion, width, side, *layers = sys.argv[1], *map(int, sys.argv[2:])
    torch.manual_seed(3)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    model = xresnet(expansion, layers, width, 10)
    for parameter in model.parameters():  # zeros and ones would hide what they multiply
        if parameter.dim() == 1:
            nn.init.uniform_(parameter, 0.5, 1.5)
    tensors = {"weight." + name: value.clone() for name, value in model.state_dict().items()}
    pictures, labels = torch.randn(4, 3, side, side), torch.tensor([3, 0, 9, 3])
    output = model(pictures)
    F.cross_entropy(output, labels).backward()
    tensors |= {"pictures": pictures, "labels": labels, "output": output}
    tensors |= {"gradient." + name: value.grad for name, value in model.named_parameters()}
    tensors |= {"after." + name: value for name, value in model.named_buffers()}
    save(tensors, path)
    print(json.dumps({"parameters": sum(value.numel() for value in model.parameters())}))


main()
