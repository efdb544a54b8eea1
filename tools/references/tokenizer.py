"""Writes tests/data/tokenizer/: small tokenizers, and what the `tokenizers` package makes of many texts with them.

    $(tools/references/venv.sh) tools/references/tokenizer.py --data FOLDER

FOLDER holds squad/dev-v1.1.json, bloom/ and gpt2_fallback/ (GPT-2's vocab.json and merges.txt, llama.cpp's reference
strings). The output is small: for large inputs only hashes, by block. The texts are random (random_text.py), every code
point, SQuAD's dev set, and a megabyte without spaces. `--only NAME` instead shows one variant's answers for a block of
random texts (`--block N`), to investigate a difference.
"""

import argparse
import json
import os
import pathlib
import shutil

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import GPT2TokenizerFast

import random_text
from sentences import SENTENCES
from tokenizer_forms import OUT, answers, as_file, changed, digest, write
from tokenizer_variants import EVERY_CODE_POINT, VARIANTS

SEED, NUM_BLOCKS, TEXTS_PER_BLOCK = 20, 48, 500


def squad_articles(data):
    with open(data / "squad/dev-v1.1.json", encoding="utf-8") as file:
        for article in json.load(file)["data"]:
            texts = []
            for paragraph in article["paragraphs"]:
                texts.append(paragraph["context"])
                for question in paragraph["qas"]:
                    texts.append(question["question"])
                    texts += [answer["text"] for answer in question["answers"]]
            yield texts


def training_texts(articles):
    return SENTENCES * 40 + [text for article in articles for text in article if len(text) > 200]


def bloom_like(data, articles):
    with open(data / "bloom/bloom.tokenizer.skeleton-no-vocab.json", encoding="utf-8") as file:
        skeleton = json.load(file)
    tokenizer = Tokenizer(models.BPE())
    split = skeleton["pre_tokenizer"]["pretokenizers"][0]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(split["pattern"]["Regex"]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=8000, special_tokens=["<unk>", "<s>", "</s>", "<pad>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(training_texts(articles), trainer)
    trained = as_file(tokenizer, True)["model"]
    skeleton["model"]["vocab"], skeleton["model"]["merges"] = trained["vocab"], trained["merges"]
    return skeleton


def characters():
    """SentencePiece's way: characters, bytes for missing ones, spaces as U+2581."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, limit_alphabet=120, max_token_length=12,
                                  show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    content = as_file(tokenizer, False)
    # Bytes are ordinary tokens: added tokens would match in the text.
    content["added_tokens"] = [t for t in content["added_tokens"] if not t["content"].startswith("<0x")]
    return content


def subwords():
    """Marks at the start of pieces that continue a word, and at its end."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>"], continuing_subword_prefix="##",
                                  end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return as_file(tokenizer, False)


def random_block(block):
    return [random_text.text(SEED, block * TEXTS_PER_BLOCK + i).decode("utf-8", "replace")
            for i in range(TEXTS_PER_BLOCK)]


def code_point_texts(plane):
    """Each code point of a plane between letters, digits and spaces, 256 per text."""
    for begin in range(plane << 16, (plane + 1) << 16, 256):
        points = [c for c in range(begin, begin + 256) if not 0xD800 <= c <= 0xDFFF]
        yield "".join(f"a{chr(c)}b {chr(c)}{chr(c)}1" for c in points)


def long_texts():
    random = random_text.Random(7)
    letters = "".join("abcdefghijklmnopqrstuvwxyz"[random.below(26)] for _ in range(1_000_000))
    return {"one_letter": "a" * 1_000_000, "no_spaces": letters, "only_spaces": " " * 1_000_000,
            "alternating": "ab" * 500_000}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    parser.add_argument("--block", type=int, default=0)
    options = parser.parse_args()
    articles = list(squad_articles(options.data))
    bases = {"bloom_like": bloom_like(options.data, articles), "characters": characters(), "subwords": subwords()}
    gpt2 = GPT2TokenizerFast(str(options.data / "gpt2_fallback/vocab.json"),
                             str(options.data / "gpt2_fallback/merges.txt")).backend_tokenizer
    made = [(name, None, {}, gpt2) if base == "gpt2" else (name, base, changes, changed(bases[base], changes))
            for name, base, changes in VARIANTS]
    if options.only:
        tokenizer = next(t for name, _, _, t in made if name == options.only)
        for i, text in enumerate(random_block(options.block)):
            print(json.dumps([i, text, *answers(tokenizer, text)], ensure_ascii=False))
        return

    OUT.mkdir(parents=True, exist_ok=True)
    for name, content in bases.items():
        write(f"{name}.json", content, separators=(",", ":"))
    shutil.copy(options.data / "gpt2_fallback/merges.txt", OUT / "gpt2_merges.txt")
    shutil.copy(options.data / "gpt2_fallback/reference-strings.inp", OUT / "reference_strings.txt")
    shutil.copy(options.data / "gpt2_fallback/reference-ids.gpt2.out", OUT / "reference_ids_gpt2.txt")
    for path in OUT.iterdir():
        path.chmod(0o644)
    blocks = [random_block(block) for block in range(NUM_BLOCKS)]
    planes = [list(code_point_texts(plane)) for plane in range(17)]
    references = []
    for name, base, changes, tokenizer in made:
        entry = {"name": name, "base": base or "gpt2", "changes": changes,
                 "random": [digest(tokenizer, block) for block in blocks]}
        if name in EVERY_CODE_POINT:
            entry["code_points"] = [digest(tokenizer, plane) for plane in planes]
        if name in ("gpt2", "bloom_like"):
            entry["squad_dev"] = [digest(tokenizer, article) for article in articles]
            entry["long"] = {kind: digest(tokenizer, [text]) for kind, text in long_texts().items()}
        references.append(entry)
        print(name)
    write("variants.json", {"tokenizers": tokenizers.__version__, "seed": SEED, "texts_per_block": TEXTS_PER_BLOCK,
                            "variants": references}, indent=1)
    by_name = {name: tokenizer for name, _, _, tokenizer in made}
    sample = [text for article in articles[::6] for text in article[:12]] + SENTENCES
    write("squad_sample.json", [{"text": text, "gpt2": by_name["gpt2"].encode(text).ids,
                                 "bloom_like": by_name["bloom_like"].encode(text).ids} for text in sample],
          separators=(",", ":"))


main()
