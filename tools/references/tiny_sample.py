#!/usr/bin/env python3
"""The text of `tessera experiment ... --scale tiny` -> experiments/tiny/{train,validation}-v1.1.json

Run: tools/references/tiny_sample.py SQUAD_TRAIN.json
800 questions to train on (16 ranks with 50 each) and 40 about other passages, on the shortest passages of SQuAD v1.1's
training set. The tokenizer is the demo's (demo_sample.py).
"""
import json
import pathlib
import sys

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


def write(name, passages, num_questions):
    articles = {}
    for title, passage in passages:
        qas = passage["qas"][:num_questions]
        num_questions -= len(qas)
        if qas:
            articles.setdefault(title, []).append({"context": passage["context"], "qas": qas})
    assert num_questions == 0
    data = [{"title": title, "paragraphs": paragraphs} for title, paragraphs in articles.items()]
    (FOLDER / name).write_text(json.dumps({"data": data, "version": "1.1"}, separators=(",", ":")) + "\n")


def main():
    passages = short_passages(json.load(open(sys.argv[1], encoding="utf-8")))
    FOLDER.mkdir(parents=True, exist_ok=True)
    held_out = passages[::20]
    write("validation-v1.1.json", held_out, NUM_VALIDATION)
    write("train-v1.1.json", [each for each in passages if each not in held_out], NUM_TRAIN)


main()
