"""Writes which tokens of a text hold a part of it, as `tokenizers` says by its offsets.

    $(tools/references/venv.sh vocabularies) tools/references/marked_texts.py

For the chat-like texts below and those that families.json shows, with each of its tokenizers: a range that begins and
ends with a visible character, and the numbers of the tokens from the first that holds a character of it to the last. That is
how transformers finds the tokens of an assistant's turn, but for a last character of several tokens: it takes the first.
"""

import json
import random

from tokenizer_forms import OUT, changed, write

CHATS = [
    "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\nIt is 4.<|im_end|>\n",
    "[INST] Say it in French: good morning [/INST]  Bonjour, \u00e7a va ?</s>[INST] Again [/INST] Oui.</s>",
    "user: caf\u00e9 \U0001f468\u200d\U0001f469\u200d\U0001f467 or tea?\nassistant: both \U0001f1eb\U0001f1f7, please.\n",
]


def main():
    source = json.loads((OUT / "families.json").read_text(encoding="utf-8"))
    bases = {name: json.loads((OUT / f"{name}.json").read_text(encoding="utf-8"))
             for name in ("marked_words", "bloom_like")}
    random.seed(7)
    texts = []
    for text in CHATS * 4 + [source["texts"][i] for i in source["shown"]]:
        visible = [i for i, c in enumerate(text) if c.isalnum()]
        if len(visible) > 2:
            begin, end = sorted(random.sample(visible, 2))
            texts.append((text, begin, end + 1))
    families = []
    for family in source["families"]:
        tokenizer = changed(bases[family["base"]], family["changes"])
        tokens = []
        for text, begin, end in texts:
            offsets = tokenizer.encode(text, add_special_tokens=False).offsets
            held = [i for i, (first, last) in enumerate(offsets) if first < end and last > begin]
            held = [held[0], held[-1]] if held else [None, None]
            tokens.append(held)
        families.append({"name": family["name"], "tokens": tokens})
    in_bytes = [[text, len(text[:b].encode()), len(text[:e].encode())] for text, b, e in texts]
    write("marked_texts.json", {"texts": in_bytes, "families": families}, separators=(",", ":"))


main()
