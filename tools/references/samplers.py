#!/usr/bin/env python3
"""References for the samplers: torch's, and those of the Hugging Face Trainer (accelerate) -> tests/data/loading/samplers.json

Each case has its settings and the XXH64 of its indices as int64; batches are concatenated, their sizes hashed separately.
"""
import json
import pathlib

import accelerate
import numpy
import torch
import xxhash
from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler
from torch.utils.data import BatchSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "loading" / "samplers.json"


def hash_of(numbers):
    return xxhash.xxh64(numpy.asarray(list(numbers), dtype="<i8").tobytes()).hexdigest()


def distributed():
    for size in (1, 2, 3, 7, 16, 100, 101, 1000, 9999):
        for ranks in (1, 2, 3, 4, 8, 13):
            for drop_last in (False, True):
                for shuffle in (False, True):
                    for seed, epoch in ((0, 0), (42, 3), (2**31 + 5, 1)) if shuffle else ((0, 0),):
                        everyone = []
                        for rank in range(ranks):
                            sampler = DistributedSampler(range(size), ranks, rank, shuffle, seed, drop_last)
                            sampler.set_epoch(epoch)
                            everyone.append(list(sampler))
                            assert len(everyone[-1]) == len(sampler)
                        yield [size, ranks, int(drop_last), int(shuffle), seed, epoch,
                               len(everyone[0]), hash_of(sum(everyone, []))]


def trainer():
    """Each rank's batches, in every epoch: the sampler, then every world-th batch."""
    for size in (1, 3, 7, 16, 50, 500, 501):
        for ranks in (1, 2, 3, 4, 8):
            for batch_size in (1, 3, 4):
                for drop_last in (False, True):
                    for shuffle, seed in ((True, 42), (False, 0)):
                        hashes, sizes = [], []
                        for epoch in (0, 2):
                            indices, lengths = [], []
                            for rank in range(ranks):
                                sampler = SeedableRandomSampler(range(size), data_seed=seed) if shuffle else SequentialSampler(range(size))
                                if shuffle:
                                    sampler.set_epoch(epoch)
                                batches = BatchSampler(sampler, batch_size, drop_last)
                                if ranks > 1:  # accelerate does not change a single process's batches
                                    batches = BatchSamplerShard(batches, ranks, rank, even_batches=True)
                                for batch in batches:
                                    indices += batch
                                    lengths.append(len(batch))
                            hashes.append(hash_of(indices))
                            sizes.append(hash_of(lengths))
                        yield [size, ranks, batch_size, int(drop_last), int(shuffle), seed, hashes, sizes]


def main():
    value = {"made_with": {"torch": torch.__version__, "accelerate": accelerate.__version__},
             "first_of_distributed": list(DistributedSampler(range(10), 4, 1, True, 42)),
             "distributed": list(distributed()), "trainer": list(trainer())}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(value, separators=(",", ":")).replace("],[", "],\n[") + "\n")


if __name__ == "__main__":
    main()
