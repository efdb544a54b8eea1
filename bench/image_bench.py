"""Images a second on one core: image_bench (ours) against torchvision + DataLoader, turn by turn.

image_bench.py OURS_PROGRAM [TINY_IMAGENET_FOLDER]; without a folder the pictures are made here.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import transforms as T

ROUNDS = 5
NORMALIZE = [T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
TRANSFORMS = {
    "train": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *NORMALIZE]),
    "val": T.Compose([T.Resize(256), T.CenterCrop(224), *NORMALIZE]),
}


def synthetic_tile(seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:64, 0:64]
    waves = [127 + 100 * np.sin(x / rng.uniform(2, 20) + y / rng.uniform(2, 20)) for _ in range(3)]
    return Image.fromarray(np.clip(np.stack(waves, -1) + rng.normal(0, 12, (64, 64, 3)), 0, 255).astype(np.uint8))


def make_small(root):
    for i in range(400):
        folder = root / "train" / f"class{i % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        synthetic_tile(i).save(folder / f"{i}.jpg", quality=90)


def make_large(small, root):
    """512 x 384, 48 small pictures side by side: the detail of real photographs, at ImageNet's usual size."""
    paths = sorted(p for p in (small / "train").rglob("*") if p.suffix.lower() in (".jpeg", ".jpg"))
    rng = np.random.default_rng(1)
    for i in range(60):
        picture = Image.new("RGB", (512, 384))
        for place, index in enumerate(rng.integers(0, len(paths), 48)):
            picture.paste(Image.open(paths[index]).convert("RGB").resize((64, 64)), (place % 8 * 64, place // 8 * 64))
        folder = root / "train" / f"class{i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        picture.save(folder / f"{i}.jpg", quality=90)


def theirs(folder, mode, num_images, num_workers):
    dataset = torchvision.datasets.ImageFolder(str(folder / "train"), TRANSFORMS[mode])
    indices = [i % len(dataset) for i in range(num_images)]
    loader = torch.utils.data.DataLoader(torch.utils.data.Subset(dataset, indices), batch_size=64, num_workers=num_workers)
    iterator = iter(loader)
    next(iterator)  # the worker is up
    started, count = time.perf_counter(), 0
    for images, _ in iterator:
        count += len(images)
    return count / (time.perf_counter() - started)


def ours(program, folder, mode, num_images, *kind):
    return float(subprocess.run([program, str(folder), mode, str(num_images), *kind], check=True, capture_output=True, text=True).stdout)


def compare(program, name, folder, mode, num_images):
    rounds = [(ours(program, folder, mode, 3 * num_images), ours(program, folder, mode, 3 * num_images, "bytes"),
               max(theirs(folder, mode, num_images, 0), theirs(folder, mode, num_images, 1))) for _ in range(ROUNDS)]
    our_rate, byte_rate, their_rate = (statistics.median(column) for column in zip(*rounds))
    ratio = statistics.median(a / b for a, _, b in rounds)
    print(f"{name} {mode}: ours {our_rate:.0f} img/s ({byte_rate:.0f} as bytes), torchvision + DataLoader {their_rate:.0f} img/s (the better of 0 and 1 workers)")
    met = ratio >= 2
    print(f"mark: images a second of one core against torchvision + DataLoader, {name} {mode}: {ratio:.2f} (at least 2): {'met' if met else 'missed'}", flush=True)
    return met


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, for the program and the workers
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        small = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else scratch / "small"
        if len(sys.argv) <= 2:
            make_small(small)
        large = scratch / "large"
        make_large(small, large)
        print(f"small: {'real' if len(sys.argv) > 2 else 'made'} 64 x 64; large: 512 x 384, "
              f"{sum(p.stat().st_size for p in large.rglob('*.jpg')) / 60 / 1024:.0f} KiB each; torchvision {torchvision.__version__}, Pillow {Image.__version__}")
        met = [compare(sys.argv[1], name, folder, mode, num_images)
               for name, folder, num_images in [("64 x 64", small, 640), ("512 x 384", large, 256)] for mode in ("train", "val")]
    sys.exit(0 if all(met) else 3)


main()
