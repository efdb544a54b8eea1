"""Our tokenizer against the `tokenizers` package on SQuAD's contexts, one thread, turn by turn in one run.

tokenizer_bench.py PROGRAM VOCABULARIES DATA: PROGRAM is tokenizer_bench, VOCABULARIES the folder that
tools/references/real_vocabularies.py made, DATA the folder with squad/ and gpt2_fallback/ ('' without: then the
committed sample, and no GPT-2). Of the original the faster of encoding one by one and in a batch counts. Ends with 3
when a mark is missed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer, models, pre_tokenizers

ROOT = pathlib.Path(__file__).parents[1]
REFERENCES = ROOT / "tests/data/tokenizer"
ROUNDS = 5
TIMES_AS_FAST = 10
MEGABYTE = 1 << 20


def contexts(data):
    if data:
        with open(pathlib.Path(data) / "squad/dev-v1.1.json", encoding="utf-8") as file:
            return [p["context"] for a in json.load(file)["data"] for p in a["paragraphs"]]
    with open(REFERENCES / "squad_sample.json", encoding="utf-8") as file:
        return [item["text"] for item in json.load(file) if len(item["text"]) > 200] * 40


class Ours:
    def __init__(self, program, tokenizer, texts_file):
        self.process = subprocess.Popen([program, str(tokenizer), texts_file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.load_seconds, _ = self.read()

    def read(self):
        seconds, count = self.process.stdout.readline().split()
        return float(seconds), int(count)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.read()


def timed(function):
    begin = time.perf_counter()
    num_tokens = function()
    return time.perf_counter() - begin, num_tokens


def compare(name, ours, original, texts):
    """The best of several rounds, ours and theirs in turn."""
    num_bytes = sum(len(text.encode()) for text in texts)
    best = {"ours": float("inf"), "one by one": float("inf"), "batch": float("inf")}
    for _ in range(ROUNDS):
        mine, num_tokens = ours.ask("encode")
        single, their_tokens = timed(lambda: sum(len(original.encode(text).ids) for text in texts))
        batch, _ = timed(lambda: sum(len(encoding.ids) for encoding in original.encode_batch(texts)))
        if num_tokens != their_tokens:
            sys.exit(f"{name}: {num_tokens} tokens, the original has {their_tokens}")
        for key, value in zip(best, (mine, single, batch)):
            best[key] = min(best[key], value)
    print(f"{name}: {len(texts)} texts, {num_bytes / 1e6:.2f} MB, {num_tokens} tokens; loaded in {ours.load_seconds:.2f} s")
    for key, seconds in best.items():
        print(f"  {key:<11} {num_bytes / seconds / 1e6:8.2f} MB/s")
    return min(best["one by one"], best["batch"]) / best["ours"]


def growth(ours, kind):
    """How much longer a megabyte takes than a sixteenth of it, per byte."""
    small = min(ours.ask(f"long {kind} {MEGABYTE // 16}")[0] for _ in range(5))
    large = min(ours.ask(f"long {kind} {MEGABYTE}")[0] for _ in range(3))
    print(f"  {kind:<11} {MEGABYTE / large / 1e6:8.2f} MB/s at 1 MiB, {MEGABYTE / 16 / small / 1e6:8.2f} at 64 KiB")
    return large / small / 16


def mark(what, value, kind, limit):
    met = value >= limit if kind == "at least" else value <= limit
    print(f"mark: {what}: {value:.2f} ({kind} {limit}): {'met' if met else 'missed'}")
    return met


def gpt2(folder):
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def main():
    program, vocabularies, data = sys.argv[1:4]
    texts = contexts(data)
    files = [REFERENCES / "bloom_like.json", *sorted(pathlib.Path(vocabularies).glob("*/tokenizer.json"))]
    subjects = [("BLOOM-like" if file.stem == "bloom_like" else file.parent.name, file, Tokenizer.from_file(str(file)))
                for file in files]
    if data:
        folder = pathlib.Path(data) / "gpt2_fallback"
        subjects.insert(0, ("GPT-2", folder, gpt2(folder)))
    all_met = True
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(text) + "\n" for text in texts)
        file.flush()
        for name, path, original in subjects:
            ours = Ours(program, path, file.name)
            ratio = compare(name, ours, original, texts)
            all_met &= mark(f"tokenizer, {name}, SQuAD contexts, speed against the original", ratio, "at least",
                            TIMES_AS_FAST)
            for kind in ("one_letter", "no_spaces", "only_spaces"):
                # n log n may cost a little more than n; a quadratic step would cost 16 times as much.
                what = f"tokenizer, {name}, {kind}, time a byte at 1 MiB against 64 KiB"
                all_met &= mark(what, growth(ours, kind), "at most", 3)
    sys.exit(0 if all_met else 3)


main()
