"""The pictures' training (tasks/images, configuration gpu) as a careful user of Python writes it.

    python3 images_peer.py --data FOLDER --workers 14 [--channels-last] [--compile default]

Worker processes decode, crop and resize bytes by torchvision; the GPU makes numbers of them.
"""

import pathlib

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.io import decode_image, read_file
from torchvision.transforms import v2

import measure


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder, side):
        classes = sorted(entry for entry in folder.iterdir() if entry.is_dir())
        self.files = [(str(file), label) for label, one in enumerate(classes) for file in sorted(one.glob("*.JPEG"))]
        self.view = v2.Compose([v2.RandomResizedCrop(side, scale=(0.08, 1), antialias=True),
                                v2.RandomHorizontalFlip()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        file, label = self.files[index]
        return self.view(decode_image(read_file(file))), label


def convolution(before, after, size, stride=1, activation=True, zero=False):
    norm = nn.BatchNorm2d(after)
    nn.init.constant_(norm.weight, 0 if zero else 1)
    layers = [nn.Conv2d(before, after, size, stride, size // 2, bias=False), norm]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if activation else []))


class Block(nn.Module):
    def __init__(self, before, inner, stride):
        super().__init__()
        after = 4 * inner
        self.path = nn.Sequential(convolution(before, inner, 1), convolution(inner, inner, 3, stride),
                                  convolution(inner, after, 1, activation=False, zero=True))
        same = [nn.AvgPool2d(2, ceil_mode=True)] if stride > 1 else []
        if before != after:
            same.append(convolution(before, after, 1, activation=False))
        self.same = nn.Sequential(*same)

    def forward(self, x):
        return F.relu_(self.path(x) + self.same(x))


def xresnet50(width, classes):
    layers = [convolution(3, width // 2, 3, 2), convolution(width // 2, width // 2, 3),
              convolution(width // 2, width, 3), nn.MaxPool2d(3, 2, 1)]
    before = width
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            inner = width << stage
            layers.append(Block(before, inner, 2 if block == 0 and stage > 0 else 1))
            before = 4 * inner
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
    return model


def main():
    parser = measure.parser(__doc__, batch=64)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--side", type=int, default=160)
    parser.add_argument("--width", type=int, default=64, help="of the first stage")
    a = parser.parse_args()
    device = measure.prepare(a)
    layout = torch.channels_last if a.channels_last else torch.contiguous_format
    model = xresnet50(a.width, classes=10).to(device, memory_format=layout)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, (0.9, 0.99), 1e-5, 0.01, fused=True)
    mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(3, 1, 1) * 255
    deviation = torch.tensor([0.229, 0.224, 0.225], device=device).view(3, 1, 1) * 255

    def loss_of(pictures, labels):
        numbers = ((pictures - mean) / deviation).contiguous(memory_format=layout)
        return F.cross_entropy(model(numbers).float(), labels)

    forward = measure.compiled(loss_of, a)

    def step(batch):
        pictures, labels = (part.to(device, non_blocking=True) for part in batch)
        optimizer.zero_grad()
        with measure.autocast(device, a):
            loss = forward(pictures, labels)
        loss.backward()
        optimizer.step()

    batches = measure.loader(Pictures(pathlib.Path(a.data) / "train", a.side), a, device)
    measure.run("images" + (", channels last" if a.channels_last else ""), a, device, batches, step)


if __name__ == "__main__":
    main()
