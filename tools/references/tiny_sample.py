#!/usr/bin/env python3
"""The text of `tessera experiment ... --scale tiny` -> experiments/tiny/{train,validation}-v1.1.json

Run: tools/references/tiny_sample.py SQUAD_TRAIN.json
800 questions to train on (16 ranks with 50 each) and 40 about other passages, on the shortest passages of SQuAD v1.1's
training set. The tokenizer is the demo's (demo_sample.py).
"""
import json
import pathlib
import sys

from demo_sample import write

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "tiny"
NUM_TRAIN, NUM_VALIDATION = 800, 40


def short_passages(data):
    """(title, passage), ASCII, shortest first."""
    found = []
    for article in data["data"]:
        for passage in article["paragraphs"]:
            qas = [qa for qa in passage["qas"] if qa["question"].isascii() and len(qa["answers"][0]["text"]) < 40]
            if passage["context"].isascii() and qas:
                found.append((article["title"], {"context": passage["context"], "qas": qas}))
    return sorted(found, key=lambda pair: len(pair[1]["context"]))


def main():
    passages = short_passages(json.load(open(sys.argv[1], encoding="utf-8")))
    FOLDER.mkdir(parents=True, exist_ok=True)
    held_out = passages[::20]
    rest = [each for each in passages if each not in held_out]
    write(FOLDER / "validation-v1.1.json", held_out, NUM_VALIDATION, separators=(",", ":"))
    write(FOLDER / "train-v1.1.json", rest, NUM_TRAIN, separators=(",", ":"))


main()
