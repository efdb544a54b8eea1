"""The same start with `datasets` and `tokenizers`: row_data_bench.py ROWS.jsonl TOKENIZER.json CACHE_FOLDER

Prints what row_data_bench prints, without packing; the memory is that of all processes together. The time is that of
load_dataset and map alone, with a process per core, not of Python's imports. With --rows SQUAD.json OUT.jsonl MEGABYTES
it makes the rows, and with --gpt2 FOLDER OUT.json the tokenizer of vocab.json and merges.txt.
"""

import json
import os
import random
import re
import sys
import threading
import time


def write_rows(source, target, megabytes):
    """Documents of 2 to 12 paragraphs, each of sentences drawn from all contexts."""
    with open(source, encoding="utf-8") as file:
        contexts = [p["context"] for a in json.load(file)["data"] for p in a["paragraphs"]]
    sentences = [s for context in contexts for s in re.split(r"(?<=[.!?]) ", context)]
    draw = random.Random(1)
    num_bytes = 0
    with open(target, "w", encoding="utf-8") as out:
        while num_bytes < int(megabytes) * 10**6:
            paragraphs = (" ".join(draw.choices(sentences, k=draw.randint(2, 8))) for _ in range(draw.randint(2, 12)))
            text = "\n\n".join(paragraphs)
            out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            num_bytes += len(text.encode())


def write_gpt2(folder, target):
    from tokenizers import ByteLevelBPETokenizer

    ByteLevelBPETokenizer(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")).save(target)


class Watch(threading.Thread):
    """The most memory, in MiB, that this process and its children have held together."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = 0
        self.start()

    def run(self):
        import psutil

        me = psutil.Process()
        while True:
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:  # it has just ended
                    pass
            self.peak = max(self.peak, total / 2**20)
            time.sleep(0.5)


def main(rows, tokenizer_file, cache):
    import datasets
    import numpy
    import tokenizers
    import xxhash

    datasets.disable_progress_bars()
    watch = Watch()
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)

    def tokenize(batch):
        return {"input_ids": [one.ids for one in tokenizer.encode_batch_fast(batch["text"])]}

    start = time.perf_counter()
    dataset = datasets.load_dataset("json", data_files=rows, split="train", cache_dir=cache)
    folder = os.path.dirname(dataset.cache_files[0]["filename"])
    files_before = set(os.listdir(folder))
    dataset = dataset.map(tokenize, batched=True, remove_columns=dataset.column_names, num_proc=os.cpu_count())
    ms = (time.perf_counter() - start) * 1000
    was = "found" if files_before == set(os.listdir(folder)) else "made"
    peak = watch.peak
    hash_of_all, num_tokens = xxhash.xxh64(), 0
    for batch in dataset.with_format("arrow").iter(1000):
        ids = batch["input_ids"].combine_chunks()
        flat = numpy.asarray(ids.flatten(), dtype="<i4")
        num_tokens += len(flat)
        hash_of_all.update(flat.tobytes())
    print(f"{ms:.2f} {was} {num_tokens} {hash_of_all.hexdigest()} {peak:.0f}")


if __name__ == "__main__":
    if sys.argv[1] == "--rows":
        write_rows(*sys.argv[2:])
    elif sys.argv[1] == "--gpt2":
        write_gpt2(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
