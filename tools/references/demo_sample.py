#!/usr/bin/env python3
"""The sample that `./x demo` trains on -> examples/demo/{train,held_out}-v1.1.json, examples/demo/tokenizer/

Run: $(tools/references/venv.sh) tools/references/demo_sample.py SQUAD_TRAIN.json
48 questions to train on and 32 held-out questions about other passages, all on short passages of SQuAD v1.1's training set;
and a BLOOM-like tokenizer of 2,048 tokens trained on the whole file.
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "demo"
NUM_TRAIN, NUM_HELD_OUT = 48, 32


def short_passages(data):
    """(title, passage with at most three questions), ASCII, shortest first, at most six per article."""
    found, seen = [], set()
    for article in data["data"]:
        plain = [p for p in article["paragraphs"] if p["context"].isascii() and 155 < len(p["context"]) < 300]
        for passage in sorted(plain, key=lambda p: len(p["context"]))[:6]:
            qas = [qa for qa in passage["qas"] if qa["question"].isascii() and len(qa["answers"][0]["text"]) < 40][:3]
            if qas and passage["context"] not in seen:
                seen.add(passage["context"])
                found.append((article["title"], {"context": passage["context"], "qas": qas}))
    return sorted(found, key=lambda pair: len(pair[1]["context"]))


def write(file, passages, num_questions, **layout):
    articles = {}
    for title, passage in passages:
        qas = passage["qas"][:num_questions]
        num_questions -= len(qas)
        if qas:
            articles.setdefault(title, []).append({"context": passage["context"], "qas": qas})
    assert num_questions == 0
    data = [{"title": title, "paragraphs": paragraphs} for title, paragraphs in articles.items()]
    file.write_text(json.dumps({"data": data, "version": "1.1"}, **layout) + "\n")


def write_tokenizer(data):
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    split = tokenizers.Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(split, behavior="isolated", invert=False),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.post_processor = tokenizers.processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2048, special_tokens=["<unk>", "<s>", "</s>", "<pad>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    passages = [p for article in data["data"] for p in article["paragraphs"]]
    texts = [p["context"] for p in passages] + [qa["question"] for p in passages for qa in p["qas"]]
    tokenizer.train_from_iterator(texts, trainer)
    (FOLDER / "tokenizer").mkdir(exist_ok=True)
    tokenizer.save(str(FOLDER / "tokenizer" / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
              "pad_token": "<pad>", "padding_side": "left", "model_input_names": ["input_ids", "attention_mask"]}
    (FOLDER / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def main():
    data = json.load(open(sys.argv[1], encoding="utf-8"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    passages = short_passages(data)
    write(FOLDER / "train-v1.1.json", passages[0::2], NUM_TRAIN, indent=1)
    write(FOLDER / "held_out-v1.1.json", passages[1::2], NUM_HELD_OUT, indent=1)
    write_tokenizer(data)


if __name__ == "__main__":
    main()
