"""Writes small tokenizers of the forms that today's model families use, and what `tokenizers` makes of odd texts.

    $(tools/references/venv.sh vocabularies) tools/references/small_families.py

tests/data/tokenizer/marked_words.json is a vocabulary like SentencePiece's, trained on the sentences of sentences.py.
families.json lists changes to it and to bloom_like.json, one for each form of file, with a hash of the original's
answers (ids with and without special tokens, decoded text in both ways) for each text, and some answers in full.
"""

import json

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from odd_strings import strings
from sentences import SENTENCES
from tokenizer_forms import OUT, answers, as_file, changed, digest, write
from tokenizer_variants import LLAMA3, MIXED_CASE, added, byte_level, normalizer, sequence, split, template

MARK = "\u2581"
NUM_TEXTS, NUM_SHOWN = 700, 20
QWEN2 = LLAMA3.replace("{1,3}", "")
TEKKEN = MIXED_CASE.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")


def marked_words():
    """Merges stay within words, as SentencePiece's do; then nothing splits the text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(MARK, "always", True),
                                                       pre_tokenizers.Digits(True)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=1100, special_tokens=special, limit_alphabet=170, max_token_length=16,
                                  show_progress=False)
    tokenizer.train_from_iterator([*SENTENCES * 3, "    ", "        "], trainer)
    content = as_file(tokenizer, False)
    content["added_tokens"] = [t for t in content["added_tokens"] if not t["content"].startswith("<0x")]
    # Runs of spaces are tokens in these vocabularies.
    for length in (2, 4, 8):
        assert MARK * length not in content["model"]["vocab"]
        content["model"]["vocab"][MARK * length] = len(content["model"]["vocab"])
        content["model"]["merges"].append([MARK * (length // 2)] * 2)
    content["pre_tokenizer"] = None
    return content


def metaspace(scheme, splits, **how):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": splits, **how}


def replace(what, content):
    return {"type": "Replace", "pattern": {"String": what}, "content": content}


def decoder(*types):
    return {"type": "Sequence", "decoders": [{"type": t} if isinstance(t, str) else t for t in types]}


STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
OF_BYTES = decoder(replace(MARK, " "), "ByteFallback", "Fuse")
OF_MARKED_BYTES = decoder(replace(MARK, " "), "ByteFallback", "Fuse", STRIP)
BEGIN = template("<s>", "$A")
CONTROLS = [added("<unk>", 0, special=True), added("<s>", 1, special=True), added("</s>", 2, special=True)]
# The last one takes white space on both sides, the others none or one.
FLAGS = [added("<|user|>", 0, special=True, rstrip=True), added("<|end|>", 0, special=True, lstrip=True),
         added("word", 0, single_word=True), added("[MASK]", 0, lstrip=True, rstrip=True, special=True)]


def numbered(tokens, first):
    return [{**token, "id": first + i} for i, token in enumerate(tokens)]


def families(end):
    """`end`: the first id that marked_words leaves free; bloom_like has 8000."""
    qwen = [added("<|endoftext|>", 8000, special=True), added("<|im_start|>", 8001, special=True),
            added("<think>", 8002), added("<tool_call>", 8003)]
    llama = {"normalizer": None, "pre_tokenizer": metaspace("first", False), "decoder": OF_MARKED_BYTES,
             "post_processor": BEGIN}
    byte_post = {"type": "Sequence", "processors": [byte_level(True), BEGIN]}
    special = [added("<unk>", 0, special=True), added("<s>", 1, special=True), added("</s>", 2, special=True)]
    return [
        ("llama2", "marked_words", {"normalizer": normalizer({"type": "Prepend", "prepend": MARK}, replace(" ", MARK)),
                                    "decoder": OF_MARKED_BYTES, "post_processor": BEGIN}),
        ("phi3", "marked_words", {"normalizer": normalizer({"type": "Prepend", "prepend": MARK}, replace(" ", MARK)),
                                  "decoder": OF_MARKED_BYTES, "added_tokens": CONTROLS + numbered(FLAGS, end)}),
        ("mistral_v3", "marked_words", {**llama, "added_tokens": [*CONTROLS, added("[INST]", end, special=True)]}),
        ("mistral_without_unknown", "marked_words", {**llama, "model": {"unk_token": None}}),
        ("unknown_fused", "marked_words", {**llama, "model": {"byte_fallback": False}}),
        ("unknown_dropped", "marked_words", {**llama, "model": {"byte_fallback": False, "unk_token": None}}),
        ("whole_words", "marked_words", {**llama, "model": {"ignore_merges": True}}),
        ("metaspace_words", "marked_words", {"pre_tokenizer": metaspace("always", True),
                                             "decoder": metaspace("always", True)}),
        ("metaspace_never", "marked_words", {"pre_tokenizer": metaspace("never", True),
                                             "decoder": metaspace("never", True)}),
        ("metaspace_old", "marked_words", {"pre_tokenizer": {"type": "Metaspace", "replacement": MARK,
                                                             "add_prefix_space": True, "str_rep": MARK},
                                           "decoder": {"type": "Metaspace", "replacement": MARK,
                                                       "add_prefix_space": True}}),
        ("metaspace_in_parts", "marked_words", {"pre_tokenizer": sequence(split(",", "Removed", kind="String"),
                                                                          metaspace("first", True)),
                                                "decoder": decoder("ByteFallback", metaspace("first", True)),
                                                "added_tokens": CONTROLS + numbered(FLAGS, end)}),
        ("gemma3", "marked_words", {"normalizer": replace(" ", MARK), "decoder": OF_BYTES, "post_processor": BEGIN,
                                    "pre_tokenizer": split(" ", "MergedWithPrevious", kind="String"),
                                    "added_tokens": CONTROLS + numbered([added("\n\n", 0), added(MARK * 3, 0)], end)}),
        ("llama3", "bloom_like", {"pre_tokenizer": sequence(split(LLAMA3), byte_level()), "post_processor": byte_post,
                                  "model": {"ignore_merges": True, "unk_token": None}, "added_tokens": special}),
        ("qwen2", "bloom_like", {"normalizer": normalizer("NFC"), "added_tokens": qwen,
                                 "pre_tokenizer": sequence(split(QWEN2), byte_level()),
                                 "model": {"unk_token": None}}),
        ("tekken", "bloom_like", {"pre_tokenizer": sequence(split(TEKKEN), byte_level()),
                                  "model": {"ignore_merges": True}, "added_tokens": special}),
        ("gpt4o", "bloom_like", {"pre_tokenizer": sequence(split(MIXED_CASE), byte_level())}),
        ("smollm2", "bloom_like", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True},
                                                             byte_level(False, True))}),
    ]


def main():
    base = marked_words()
    write("marked_words.json", base, separators=(",", ":"))
    with open(OUT / "bloom_like.json", encoding="utf-8") as file:
        bases = {"marked_words": base, "bloom_like": json.load(file)}
    special = [token["content"] for token in FLAGS + CONTROLS] + ["[INST]", "<|im_start|>", "<think>", "\n\n"]
    texts = [text for text in strings(2 * NUM_TEXTS, special) if len(text) <= 250][:NUM_TEXTS]
    short = [i for i, text in enumerate(texts) if 3 < len(text) <= 50]
    shown = short[::len(short) // NUM_SHOWN]
    entries = []
    for name, base_name, changes in families(len(base["model"]["vocab"])):
        tokenizer = changed(bases[base_name], changes)
        entries.append({"name": name, "base": base_name, "changes": changes,
                        "answers": [answers(tokenizer, texts[i]) for i in shown],
                        "hashes": [digest(tokenizer, [text])[:8] for text in texts]})
        print(name)
    write("families.json", {"tokenizers": tokenizers.__version__, "texts": texts, "shown": shown,
                           "families": entries},
          separators=(",", ":"))


main()
