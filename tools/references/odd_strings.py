"""Texts that tokenizers get wrong: pictures of several characters, control characters, both directions, long runs of
spaces, special tokens in the text, text that was once broken. `strings(count, special)` gives as many, always the same.
"""

import random_text
from sentences import SENTENCES

SEED = 31
EMOJI = ["\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea", "\U0001f1e6\U0001f1e8",
         "1\ufe0f\u20e3", "\U0001f44d\U0001f3fd", "\u2764\ufe0f\u200d\U0001f525", "\U0001f3f4\u200d\u2620\ufe0f",
         "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U0001f600", "\u263a\ufe0f",
         "\u200d", "\U0001f9d1\U0001f3ff\u200d\U0001f91d\u200d\U0001f9d1\U0001f3fb", "\ufe0f", "\U0001f3ff"]
CONTROLS = [chr(c) for c in [*range(32), *range(127, 160)]]
DIRECTIONS = ["\u202e", "\u202d", "\u2066", "\u2069", "\u200f", "\u200e", "\u061c", "שלום עולם", "مرحبا بالعالم",
              "א", "ـ", "ﷺ", "\u0651\u064e", "\u05c1\u05bc", "abc שלום 123 def", "(נבדק)", "٣٤٥", "۱۲۳"]
# What remains of broken text: the replacement character, noncharacters, private and unassigned ones, lone marks,
# a byte order mark, and UTF-8 read as Latin-1.
BROKEN = ["\ufffd", "\ufffd\ufffd\ufffd", "\ufffe", "\uffff", "\ufeff", "\U0010ffff", "\ue000", "\u0378", "\u0301",
          "\u0300\u0316\u0300", "\u0338", "Ã©Ã¼", "â€™", "Ð¿Ñ€Ð¸", "\u00ad", "\u2028", "\u2029", "\x00", "\U000e0001",
          "a\u0308\u0323", "\u1100\u1161\u11a8\u11a9", "\uac00\u11a8", "\u0f71\u0f72", "\u0958", "\u2126", "\ufb03"]
MARKS = ["\u2581", "\u2581\u2581\u2581", " \u2581 ", "\u2581a", "a\u2581", "\u0120", "\u0120a", "\u010a", "<0x0A>",
         "<0x41>", "<0xE2><0x96><0x81>", "<unk>", "<s>", "</s>", "[INST]", "<|endoftext|>", "<0xZZ>"]
WORDS = ["don't", "I'LL", "we'RE", "'s", "'\u017f", "x'd", "naïve", "Straße", "ǅ", "ﬁn", "İstanbul", "ıI", "K",
         "12345678", "3.14159e-10", "1,000,000", "²³¹", "Ⅷ", "½", "٣", "camelCaseWord", "HTTPServer",
         "snake_case_name", "a/b/c//",
         "http://example.org/a?b=c&d=%20#e", "C:\\temp\\x", "user@example.org", "...", "!!!???", "--", "—", "“quoted”",
         "\n//", "};\n", "/*\r\n*/", "#include <a>", "==", "日本語テキスト", "中文字符", "한국어", "ไทยไม่มีเว้นวรรค", "नमस्ते",
         "𝔘𝔫𝔦", "𐍈", "𠜎"]


def spaces(random):
    kinds = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2003", "\n ", " \n", "\u200b", "\x0b", "\x85"]
    unit = kinds[random.below(len(kinds))]
    return unit * (1 + random.below(200 if random.below(8) == 0 else 12))


def part(random, special):
    lists = (EMOJI, CONTROLS, DIRECTIONS, BROKEN, MARKS, WORDS, WORDS, SENTENCES, special or MARKS)
    kind = random.below(len(lists) + 3)
    if kind < len(lists):
        return lists[kind][random.below(len(lists[kind]))]
    if kind == len(lists):
        return spaces(random)
    if kind == len(lists) + 1:  # an ordinary space most often stands between words
        return " "
    sentence = SENTENCES[random.below(len(SENTENCES))]
    begin = random.below(len(sentence))
    return sentence[begin:begin + 1 + random.below(30)]


def strings(count, special):
    """A third by random_text.py, two thirds of the parts above, with special tokens among them; a few are long."""
    texts = ["", " ", "  ", "\n", *SENTENCES, *special[:40], *(f" {token} " for token in special[:40])]
    for index in range(count - len(texts)):
        if index % 3 == 0:
            texts.append(random_text.text(SEED, index).decode("utf-8", "replace"))
            continue
        random = random_text.Random(SEED * 1_000_003 + index)
        length = random.below(300) if random.below(60) == 0 else 1 + random.below(9)
        texts.append("".join(part(random, special) for _ in range(length)))
    return texts
