"""Random texts, the same as those of src/data/tokenizer/random_text.h. `text(seed, index)` returns one text as bytes.

Every fourth text has bytes that are not UTF-8; they are decoded with Python's errors="replace".
"""

MASK = (1 << 64) - 1
PALETTE = b"  \t\n\r'.,!?()|-[]{}abcdeslmrtvABCDEST0123456789"
SPACES = [0x9, 0xB, 0xC, 0x85, 0xA0, 0x1680, 0x180E, 0x2000, 0x200A, 0x200B, 0x200C, 0x200D, 0x2028, 0x2029, 0x202F,
          0x205F, 0x3000, 0xFEFF]
RANGES = [(0x300, 0x36F), (0x1100, 0x11FF), (0xAC00, 0xD7A3), (0x4E00, 0x9FFF), (0x3040, 0x30FF), (0x900, 0x97F),
          (0x600, 0x6FF), (0x590, 0x5FF), (0xE00, 0xE7F), (0x1F300, 0x1F6FF), (0x1D400, 0x1D7FF), (0xF900, 0xFAFF),
          (0xFB00, 0xFFEF), (0x2000, 0x2BFF), (0x1E00, 0x1FFF), (0xAB0, 0x10FF)]
WORDS = ["<s>", "</s>", "<pad>", "<|endoftext|>", "'ll", "'re ", "don't", "the ", " The", "yesterday", "Yesterday ",
         "\u017f", "\u212a", "\u0130", "\u00df", "\ufb01", "\u1e9b\u0323", "A\u030a", "\u1100\u1161\u11a8",
         "\U0001f468\u200d\U0001f469\u200d\U0001f467", "[MASK]", " [MASK]  ", "word", "\u2581", "<0x41>", "1234567",
         "\r\n\r\n", "   ", "hello world", "\u00e9", "e\u0301", "\u09b0\u09cd\u0995"]


class Random:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed & MASK

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % n


def character(random, first, last):
    point = first + random.below(last - first + 1)
    if 0xD800 <= point <= 0xDFFF:
        point -= 0x1000
    return chr(point).encode()


def text(seed, index):
    random = Random(seed * 1000003 + index)
    broken = index % 4 == 3
    length = random.below(400) if random.below(50) == 0 else random.below(40)
    out = bytearray()
    for _ in range(length):
        kind = random.below(16)
        if kind < 5:
            out.append(PALETTE[random.below(len(PALETTE))])
        elif kind < 7:
            out += character(random, 0x20, 0x7E)
        elif kind == 7:
            out += character(random, 0xA0, 0x52F)
        elif kind == 8:
            out += character(random, 0, 0xFFFF)
        elif kind == 9:
            plane = random.below(17) << 16
            out += character(random, plane, plane + 0xFFFF)
        elif kind == 10:
            out += chr(SPACES[random.below(len(SPACES))]).encode()
        elif kind < 13:
            out += character(random, *RANGES[random.below(len(RANGES))])
        elif kind == 13:
            out += WORDS[random.below(len(WORDS))].encode()
        elif kind == 14:
            unit = character(random, 0x20, 0x2FF)
            out += unit * (1 + random.below(8))
        elif broken:
            whole = character(random, 0x80, 0x10FFFF)
            if random.below(2) == 0:
                out += whole[: 1 + random.below(len(whole))]
            else:
                out.append(0x80 + random.below(0x80))
        else:
            out += b"0123456789"[random.below(10) :][:1]
    return bytes(out)
