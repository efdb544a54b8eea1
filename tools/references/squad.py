#!/usr/bin/env python3
"""References for the SQuAD reader, its label modes and its subsets.

  squad.py sample SOURCE   a few dozen rows of a SQuAD v1.1 file -> tests/data/squad/sample-v1.1.json, the same from
                           `datasets` as sample.jsonl, and a small tokenizer trained on them
  squad.py references      what transformers, datasets and NumPy make of them -> labels.json, subsets.json
  squad.py whole SQUAD GPT2
                           the same for a whole file with GPT-2's vocabulary (vocab.json, merges.txt) -> whole.json
"""
import json
import pathlib
import sys

import datasets
import numpy
import tokenizers
import transformers
import xxhash

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "squad"


def squad_rows(path):
    for article in json.load(open(path, encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answers = question["answers"]
                yield {
                    "id": question["id"],
                    "title": article["title"],
                    "context": paragraph["context"],
                    "question": question["question"],
                    "answers": {"text": [a["text"] for a in answers], "answer_start": [a["answer_start"] for a in answers]},
                }


def make_sample(source):
    """The first paragraphs of a few articles, two to four questions each, and one long paragraph with non-Latin letters."""
    data = json.load(open(source, encoding="utf-8"))
    articles = []
    for number, article in enumerate(data["data"][:24]):
        paragraphs = sorted(article["paragraphs"], key=lambda p: -len(p["context"]))[:1] if number % 5 == 0 else article["paragraphs"][:1]
        if any(ord(c) > 0x2FF for c in paragraphs[0]["context"]) or number < 10:
            qas = paragraphs[0]["qas"][: 2 + number % 3]
            articles.append({"title": article["title"], "paragraphs": [{"context": paragraphs[0]["context"], "qas": qas}]})
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "sample-v1.1.json", "w", encoding="utf-8") as file:
        json.dump({"data": articles, "version": "1.1"}, file, indent=1)
        file.write("\n")
    datasets.Dataset.from_list(list(squad_rows(FOLDER / "sample-v1.1.json"))).to_json(str(FOLDER / "sample.jsonl"))


def make_tokenizer():
    """BLOOM's pipeline with a small vocabulary: 1,024 tokens trained on the sample."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    split = tokenizers.Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(split, behavior="isolated", invert=False),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.post_processor = tokenizers.processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1024, special_tokens=["<unk>", "<s>", "</s>", "<pad>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    texts = [row["question"] + " " + row["context"] for row in squad_rows(FOLDER / "sample-v1.1.json")]
    tokenizer.train_from_iterator(texts, trainer)
    (FOLDER / "tokenizer").mkdir(exist_ok=True)
    tokenizer.save(str(FOLDER / "tokenizer" / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
              "pad_token": "<pad>", "padding_side": "left"}
    (FOLDER / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def prompt_of(row):
    return f"Question: {row['question']} Context: {row['context']} Answer:"


def answer_of(row):
    return row["answers"]["text"][0] if row["answers"]["text"] else "No Answer"


def shifted(ids, labels, mask):
    """transformers predicts labels[t + 1] at position t; padding is left out."""
    following = labels[1:] + [-100]
    kept = [t for t in range(len(ids)) if mask[t]]
    return [ids[t] for t in kept], [following[t] for t in kept]


def mode_answer(tokenizer, row, max_length):
    def ids_of(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    answer = ids_of(" " + answer_of(row)) + [tokenizer.eos_token_id]
    prompt = ids_of(prompt_of(row))
    # Prompt and answer give the same tokens separately as together.
    assert prompt + answer[:-1] == ids_of(prompt_of(row) + " " + answer_of(row))
    if len(prompt) + len(answer) > max_length:
        head, context, tail = ids_of(f"Question: {row['question']} Context:"), ids_of(" " + row["context"]), ids_of(" Answer:")
        assert head + context + tail == prompt
        prompt = head + context[: max_length - len(head) - len(tail) - len(answer)] + tail
    ids = prompt + answer
    return shifted(ids, [-100] * len(prompt) + answer, [1] * len(ids))


def mode_full(tokenizer, row, max_length):
    encoded = tokenizer(prompt_of(row) + " " + answer_of(row), truncation=True, max_length=max_length, padding="max_length")
    labels = [i if m else -100 for i, m in zip(encoded["input_ids"], encoded["attention_mask"])]
    return shifted(encoded["input_ids"], labels, encoded["attention_mask"])


def mode_padded(tokenizer, row, max_length):
    old = tokenizer.pad_token, tokenizer.padding_side
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "right"
    encoded = tokenizer(prompt_of(row) + " " + answer_of(row), truncation=True, max_length=max_length, padding="max_length")
    tokenizer.pad_token, tokenizer.padding_side = old
    return shifted(encoded["input_ids"], list(encoded["input_ids"]), [1] * max_length)


def mode_separate(tokenizer, row, max_length):
    encoded = tokenizer(prompt_of(row), truncation=True, max_length=max_length, padding="max_length")
    labels = tokenizer(answer_of(row), truncation=True, max_length=max_length, padding="max_length")
    label_ids = [i if m else -100 for i, m in zip(labels["input_ids"], labels["attention_mask"])]
    return shifted(encoded["input_ids"], label_ids, encoded["attention_mask"])


MODES = {"answer": mode_answer, "full": mode_full, "padded": mode_padded, "separate": mode_separate}


def hash_of(numbers, kind):
    return xxhash.xxh64(numpy.asarray(numbers, dtype=kind).tobytes()).hexdigest()


def label_references():
    """For each mode, padding side and max_length: one hash per row, of ids and targets as int32; one row in full."""
    rows = list(squad_rows(FOLDER / "sample-v1.1.json")) + [json.loads(line) for line in open(FOLDER / "made.jsonl")]
    cases = []
    for side in ("left", "right"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER / "tokenizer", padding_side=side)
        for mode, make in MODES.items():
            for max_length in (512, 160):
                made = [make(tokenizer, row, max_length) for row in rows]
                cases.append({
                    "mode": mode, "padding_side": side, "max_length": max_length,
                    "rows": [hash_of(ids + targets, "<i4") for ids, targets in made],
                    "tokens": sum(len(ids) for ids, _ in made),
                    "first_ids": made[0][0][-12:], "first_targets": made[0][1][-12:],
                })
    write("labels.json", {"made_with": versions(), "cases": cases})


def whole_references(squad, gpt2):
    """One hash per mode over all rows, each row's ids before its targets."""
    inner = tokenizers.ByteLevelBPETokenizer(f"{gpt2}/vocab.json", f"{gpt2}/merges.txt")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner._tokenizer, eos_token="<|endoftext|>",
                                                     pad_token="<|endoftext|>", padding_side="right")
    rows = list(squad_rows(squad))
    cases = {}
    for mode, make in MODES.items():
        total = xxhash.xxh64()
        count = 0
        for row in rows:
            ids, targets = make(tokenizer, row, 512)
            total.update(numpy.asarray(ids + targets, dtype="<i4").tobytes())
            count += len(ids)
        cases[mode] = {"hash": total.hexdigest(), "tokens": count, "rows": len(rows)}
    write("whole.json", {"made_with": versions(), "file": pathlib.Path(squad).name, "max_length": 512, "modes": cases})


def subset_references():
    """The rows of Dataset.shuffle(seed).select(range(n)), hashed as int64, and NumPy's permutations for larger sizes."""
    cases = []
    for size in (1, 2, 3, 5, 10, 31, 32, 33, 64, 100, 257, 1000, 10570, 87599):
        for seed in (0, 1, 42, 1234, 2**31, 2**32 - 1, 2**32, 2**63 + 11):
            dataset = datasets.Dataset.from_dict({"row": numpy.arange(size)})
            count = min(size, 500)
            rows = dataset.shuffle(seed=seed).select(range(count))["row"]
            cases.append([size, str(seed), count, hash_of(rows, "<i8")])
    for size in (65536, 1000003, 3000000):
        for seed in (7, 42):
            cases.append([size, str(seed), size, hash_of(numpy.random.default_rng(seed).permutation(size), "<i8")])
    write("subsets.json", {"made_with": versions(), "first_ten_of_100_by_42":
          [int(i) for i in numpy.random.default_rng(42).permutation(100)[:10]], "cases": cases})


def versions():
    return {m.__name__: m.__version__ for m in (datasets, numpy, tokenizers, transformers)}


def write(name, value):
    text = json.dumps(value, indent=None, separators=(",", ":")).replace('},{', '},\n{').replace('],[', '],\n[')
    (FOLDER / name).write_text(text + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["sample"]:
        make_sample(sys.argv[2])
        make_tokenizer()
    elif sys.argv[1:2] == ["whole"]:
        whole_references(*sys.argv[2:])
    elif sys.argv[1:] == ["references"]:
        label_references()
        subset_references()
    else:
        sys.exit(__doc__)
