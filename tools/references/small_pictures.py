#!/usr/bin/env python3
"""Generates experiments/tiny/pictures: a data set in TinyImageNet's layout, 4 classes of generated 32 x 32 images.

A class is a colour and a pattern (stripes, rings, ...), drawn with random brightness, position and noise. The class
names are not in the order of the patterns.
"""
import math
import pathlib
import random

from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "tiny" / "pictures"
SIZE = 32
# name, colour of the pattern, phase of the pattern at x, y from its centre
CLASSES = [
    ("n00000030", (220, 60, 50), lambda x, y: x),
    ("n00000010", (60, 200, 70), lambda x, y: y),
    ("n00000040", (70, 90, 230), lambda x, y: math.hypot(x, y)),
    ("n00000020", (210, 200, 60), lambda x, y: x + y),
]
NUM_TRAIN, NUM_VAL = 24, 10


def picture(rng, colour, phase):
    left, top = rng.uniform(8, 24), rng.uniform(8, 24)
    width, light = rng.uniform(3, 6), rng.uniform(0.7, 1.1)
    image = Image.new("RGB", (SIZE, SIZE))
    for y in range(SIZE):
        for x in range(SIZE):
            wave = 0.55 + 0.45 * math.cos(2 * math.pi * phase(x - left, y - top) / width)
            image.putpixel((x, y), tuple(max(0, min(255, int(light * wave * c + rng.gauss(0, 20)))) for c in colour))
    return image


def main():
    rng = random.Random(7)
    annotations = []
    (FOLDER / "val" / "images").mkdir(parents=True, exist_ok=True)
    for name, colour, phase in CLASSES:
        folder = FOLDER / "train" / name / "images"
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(NUM_TRAIN):
            picture(rng, colour, phase).save(folder / f"{name}_{i}.JPEG", quality=60)
    for i in range(NUM_VAL * len(CLASSES)):
        name, colour, phase = CLASSES[rng.randrange(len(CLASSES))]
        picture(rng, colour, phase).save(FOLDER / "val" / "images" / f"val_{i}.JPEG", quality=60)
        annotations.append(f"val_{i}.JPEG\t{name}\t0\t0\t{SIZE - 1}\t{SIZE - 1}\n")
    (FOLDER / "val" / "val_annotations.txt").write_text("".join(annotations))


if __name__ == "__main__":
    main()
