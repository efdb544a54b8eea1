"""The same start with `datasets` and `transformers`: text_data_bench.py ROWS.jsonl TOKENIZER CACHE_FOLDER

Prints what text_data_bench prints. The time is that of load_dataset and map alone, not of Python's imports. The rows are
given as JSON lines, which `datasets` reads fastest. With --rows SQUAD.json OUT.jsonl it makes them.
"""
import json
import os
import sys
import time


def write_rows(source, target):
    with open(source, encoding="utf-8") as file, open(target, "w", encoding="utf-8") as out:
        for article in json.load(file)["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    row = {"context": paragraph["context"], "question": question["question"],
                           "answers": {"text": [a["text"] for a in question["answers"]]}}
                    out.write(json.dumps(row) + "\n")


def load_tokenizer(path):
    import tokenizers
    import transformers

    if os.path.exists(os.path.join(path, "tokenizer.json")):
        return transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(path, "tokenizer.json"))
    inner = tokenizers.ByteLevelBPETokenizer(os.path.join(path, "vocab.json"), os.path.join(path, "merges.txt"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner._tokenizer)


def main(rows, tokenizer_path, cache):
    import datasets
    import numpy
    import xxhash

    datasets.disable_progress_bars()
    tokenizer = load_tokenizer(tokenizer_path)

    def tokenize(batch):
        texts = [f"Question: {q} Context: {c} Answer: {a['text'][0] if a['text'] else 'No Answer'}"
                 for q, c, a in zip(batch["question"], batch["context"], batch["answers"])]
        return tokenizer(texts, truncation=True, max_length=512)

    tokenizer("once, so that the tokenizer's state is the one that the cache's fingerprint sees", truncation=True, max_length=512)
    start = time.perf_counter()
    dataset = datasets.load_dataset("json", data_files=rows, split="train", cache_dir=cache)
    folder = os.path.dirname(dataset.cache_files[0]["filename"])
    files_before = set(os.listdir(folder))
    dataset = dataset.map(tokenize, batched=True, remove_columns=dataset.column_names)
    ms = (time.perf_counter() - start) * 1000
    ids = dataset.with_format("numpy")["input_ids"]
    flat = numpy.concatenate([numpy.asarray(row, dtype="<i4") for row in ids])
    print(f"{ms:.2f} {'found' if files_before == set(os.listdir(folder)) else 'made'} {len(flat)} {xxhash.xxh64(flat.tobytes()).hexdigest()}")


if __name__ == "__main__":
    if sys.argv[1] == "--rows":
        write_rows(sys.argv[2], sys.argv[3])
    else:
        main(*sys.argv[1:])
