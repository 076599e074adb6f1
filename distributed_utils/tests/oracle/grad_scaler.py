"""Takes the steps of a script with torch.amp.GradScaler and prints what each left behind."""
import json

import torch

# What the input of each step holds in one place, and what else happens in it.
STEPS = [
    "1", "2", "inf", "0.5", "nan", "-inf", "3", "1e35", "1e35", "0.25", "4", "unscale 5", "6",
    "unscale inf", "new-scale 7", "8", "9", "10", "second inf", "second 11", "12", "13", "14", "15", "16",
]


def main():
    torch.set_num_threads(1)
    weight = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    other = torch.tensor([3.0, 0.125], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.125, momentum=0.5)
    second = torch.optim.AdamW([other], lr=0.25)
    scaler = torch.amp.GradScaler("cpu", init_scale=3 * 2.0**15, growth_interval=3, growth_factor=4.0)
    results = []
    for number, text in enumerate(STEPS):
        *what, value = text.split()
        optimizer.zero_grad()
        second.zero_grad()
        row = torch.tensor([float(value), 0.3, number / 7])
        loss = (weight * row).sum() + (other * torch.tensor([0.5, 1.5])).sum() * (0.5 if "second" not in what else float(value))
        scaler.scale(loss).backward()
        if "unscale" in what:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
        before = weight.detach().clone()
        scaler.step(optimizer)
        if "second" in what:
            scaler.step(second)
        if "new-scale" in what:
            scaler.update(640.0)
        else:
            scaler.update()
        results.append(
            dict(
                step=text,
                scale=scaler.get_scale(),
                growth_tracker=scaler._get_growth_tracker(),
                stepped=not torch.equal(before, weight.detach()),
                weight=weight.tolist(),
                other=other.tolist(),
            )
        )
    state = scaler.state_dict()
    print(json.dumps(dict(steps=results, state=state)))


main()
