"""Writes src/data/tokenizer/unicode_tables.inc: how the `tokenizers` package classifies each code point.

Its parts use different versions of Unicode (regular expressions 16, normalisation 11, letter case a newer one), so no
library with a single version equals it. Everything here comes from the package itself, code point by code point. Only
the combining classes come from Python's `unicodedata` (they never change once assigned); they are checked against the
order in which the package puts marks.

    $(tools/references/venv.sh) tools/references/unicode_tables.py
"""

import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Cn Cc Cf Co Cs Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)


def matched_by(pattern):
    """The code points that a regular expression for one character matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for begin in range(0, len(POINTS), 4096):
        chunk = POINTS[begin : begin + 4096]
        left = {ord(c) for piece, _ in split.pre_tokenize_str("".join(map(chr, chunk))) for c in piece}
        found.update(c for c in chunk if c not in left)
    return found


def pieces_with_a(pre_tokenizer):
    """For each code point c: the pieces of "ac"."""
    return {c: [p for p, _ in pre_tokenizer.pre_tokenize_str("a" + chr(c))] for c in POINTS}


def ranges(points):
    result = []
    for c in sorted(points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def write_numbers(out, numbers):
    line = ""
    for n in numbers:
        text = f"{n:#x}," if n > 9 else f"{n},"
        if len(line) + len(text) > 118:
            out.append(line)
            line = ""
        line += text
    if line:
        out.append(line)


def table(out, comment, name, numbers, kind="std::uint32_t"):
    out.append(f"// {comment}")
    out.append(f"constexpr {kind} {name}[] = {{")
    write_numbers(out, numbers)
    out.append("};")


def categories():
    category = {c: "Cs" for c in range(0xD800, 0xE000)}
    for name in CATEGORIES:
        if name != "Cs":
            for c in matched_by(r"\p{%s}" % name):
                assert c not in category
                category[c] = name
    assert len(category) == 0x110000
    runs, last = [], None
    for c in range(0x110000):
        if category[c] != last:
            last = category[c]
            runs += [c, CATEGORIES.index(last)]
    return category, runs


def lower_case():
    lower = normalizers.Lowercase()
    pairs = []
    for c in POINTS:
        small = lower.normalize_str(chr(c))
        if small != chr(c):
            assert len(small) <= 2
            pairs += [c, ord(small[0]), ord(small[1]) if len(small) == 2 else 0]
    return pairs


def decompositions(form, other=None):
    """Flat: code point, number of characters, characters. Without Hangul syllables, which are computed."""
    flat, count = [], 0
    normalizer = getattr(normalizers, form)()
    for c in POINTS:
        whole = normalizer.normalize_str(chr(c))
        if whole != chr(c) and c not in HANGUL and (other is None or other.normalize_str(chr(c)) != whole):
            flat += [c, len(whole), *map(ord, whole)]
            count += 1
    return flat, count


def compositions():
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    triples = []
    for c in POINTS:
        parts = nfd.normalize_str(chr(c))
        if len(parts) < 2 or c in HANGUL or nfc.normalize_str(chr(c)) != chr(c):
            continue
        first = nfc.normalize_str(parts[:-1])
        assert len(first) == 1 and nfc.normalize_str(first + parts[-1]) == chr(c), hex(c)
        triples.append((ord(first), ord(parts[-1]), c))
    return [n for triple in sorted(triples) for n in triple]


def combining_classes():
    """Runs of first, last, class, as the package orders them: marks it does not know have class 0."""
    nfd = normalizers.NFD()
    low, high = chr(0x0334), chr(0x0345)  # classes 1 and 240
    classes = {}
    for c in POINTS:
        given = unicodedata.combining(chr(c))
        swaps_after_high = nfd.normalize_str("a" + high + chr(c)) != "a" + high + nfd.normalize_str(chr(c))
        swaps_before_low = chr(c) != low and nfd.normalize_str("a" + chr(c) + low) == "a" + low + nfd.normalize_str(chr(c))
        known = swaps_after_high or swaps_before_low
        if nfd.normalize_str(chr(c)) != chr(c):
            continue  # decomposed first, so its own class is never used
        if not known:
            continue
        assert given != 0, hex(c)
        assert swaps_after_high == (given < 240) and swaps_before_low == (given > 1), hex(c)
        classes[c] = given
    runs = []
    for c, value in sorted(classes.items()):
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == value:
            runs[-1][1] = c
        else:
            runs.append([c, c, value])
    return [n for run in runs for n in run]


def flat(points):
    return [n for pair in ranges(points) for n in pair]


def main():
    category, runs = categories()
    spaces = matched_by(r"\s")
    assert matched_by(r"\d") == {c for c in POINTS if category[c] == "Nd"}
    word = matched_by(r"\w")
    plain_word = {c for c in POINTS if category[c][0] in "LM" or category[c] in ("Nd", "Pc")}
    assert plain_word <= word
    rust_word = {c for c, pieces in pieces_with_a(pre_tokenizers.Whitespace()).items() if pieces == ["a" + chr(c)]}
    assert matched_by(r"[\w]") == word & rust_word  # inside [] it is another set: see expression_class.cc
    numeric = {c for c, pieces in pieces_with_a(pre_tokenizers.Digits(True)).items() if len(pieces) == 2}
    split_at = {c for c in POINTS if len(pre_tokenizers.WhitespaceSplit().pre_tokenize_str("a" + chr(c) + "b")) == 2}
    assert split_at == spaces
    number = {c for c in POINTS if category[c][0] == "N"}
    assert number <= numeric
    canonical, num_canonical = decompositions("NFD")
    compatible, num_compatible = decompositions("NFKD", normalizers.NFD())

    out = [
        f"// Written by tools/references/unicode_tables.py from the answers of tokenizers {tokenizers.__version__}. Do not edit.",
        "// clang-format off",
    ]
    table(out, "The first code point of each run, and its general category (an index into kCategoryNames).",
          "kCategoryRuns", runs)
    out.append("constexpr const char* kCategoryNames[] = {" + ",".join(f'"{n}"' for n in CATEGORIES) + "};")
    table(out, r"First and last of the ranges that are white space (\s).", "kSpaceRanges", flat(spaces))
    table(out, r"What \w of Split's expressions has beyond L, M, Nd and Pc.", "kWordExtraRanges", flat(word - plain_word))
    table(out, r"\w of Whitespace and of single_word: beyond the above, and without.", "kPlainWordAddedRanges",
          flat(rust_word - word))
    table(out, "", "kPlainWordRemovedRanges", flat(word - rust_word))
    table(out, "What Digits takes for a digit beyond N.", "kNumericExtraRanges", flat(numeric - number))
    table(out, "Code point, its lower case, and the second character of that or 0.", "kLowerCase", lower_case())
    table(out, "Code point, number of characters, characters: canonical, in full. Hangul is arithmetic.",
          "kCanonicalDecompositions", canonical)
    table(out, "The same for compatibility, where it differs from the canonical one.", "kCompatibilityDecompositions",
          compatible)
    table(out, "First, second, what they compose to; sorted.", "kCompositions", compositions())
    table(out, "First, last, combining class.", "kCombiningRuns", combining_classes())
    out.append("// clang-format on")
    text = "\n".join(line.rstrip() for line in out if line != "// ") + "\n"
    path = pathlib.Path(__file__).parents[2] / "src/data/tokenizer/unicode_tables.inc"
    path.write_text(text)
    print(f"{path}: {len(text)} bytes, {num_canonical} canonical and {num_compatible} compatibility decompositions")


main()
