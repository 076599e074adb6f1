"""Prints what Python's DistributedSampler deals to each rank."""
import itertools
import json

from torch.utils.data.distributed import DistributedSampler

entries = []
for size, replicas, shuffle, drop_last, seed, epoch in itertools.product(
    (1, 5, 24, 1001), (1, 2, 3), (True, False), (True, False), (0, 17), (0, 3)
):
    for rank in range(replicas):
        sampler = DistributedSampler(
            range(size), num_replicas=replicas, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last
        )
        sampler.set_epoch(epoch)
        entries.append(
            dict(size=size, num_replicas=replicas, rank=rank, shuffle=shuffle, drop_last=drop_last,
                 seed=seed, epoch=epoch, indices=list(sampler))
        )
print(json.dumps(entries))
