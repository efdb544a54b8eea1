"""The tokenizers of tokenizer.py: a base file with changes, one for each feature that a file can have."""


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def normalizer(*types):
    steps = [{"type": t} if isinstance(t, str) else t for t in types]
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "normalizers": steps}


def added(content, id, **how):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **how}


def template(*names):
    ids = {"<s>": 1, "</s>": 2, "both": [1, 2]}
    pieces = [{"Sequence": {"id": "A", "type_id": 0}} if n == "$A" else {"SpecialToken": {"id": n, "type_id": 0}}
              for n in names]
    tokens = {n: {"id": n, "ids": ids[n] if isinstance(ids[n], list) else [ids[n]],
                  "tokens": ["<s>", "</s>"] if n == "both" else [n]} for n in names if n != "$A"}
    pair = [*pieces, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": pieces, "pair": pair, "special_tokens": tokens}


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
MIXED_CASE = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
              r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
              r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Syntax that Oniguruma reads differently from other engines.
PECULIAR = r"\h{2}|[\w&&[^a-c]]+|\w\b|(?<=[[:space:]])[^\P{N}]|^.|(?m:..)$|a{2}+|(?>a|ab)|\p{^L}(?=\u0061)|\x{41}?+B"
MARK = added("[MASK]", 8000)
SPECIALS = [added("<unk>", 0, special=True), added("<s>", 1, special=True), added("</s>", 2, special=True)]

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
VARIANTS = [
    ("gpt2", "gpt2", {}),
    ("bloom_like", "bloom_like", {}),
    ("gpt2_expression", "bloom_like", {"pre_tokenizer": byte_level(regex=True)}),
    ("gpt2_split", "bloom_like", {"pre_tokenizer": sequence(split(GPT2), byte_level())}),
    ("llama3", "bloom_like", {"pre_tokenizer": sequence(split(LLAMA3), byte_level()), "model": {"ignore_merges": True},
                              "post_processor": template("<s>", "$A", "</s>")}),
    ("mixed_case", "bloom_like", {"pre_tokenizer": sequence(split(MIXED_CASE), byte_level())}),
    ("peculiar", "bloom_like", {"pre_tokenizer": sequence(split(PECULIAR), byte_level())}),
    *[(f"split_{b}{'_inverted' if invert else ''}".lower(), "bloom_like",
       {"pre_tokenizer": sequence(split(r"\p{P}+|\s|\d", b, invert), byte_level())})
      for b in BEHAVIORS for invert in (False, True)],
    ("split_text", "bloom_like", {"pre_tokenizer": sequence(split("e.", "MergedWithNext", kind="String"), byte_level())}),
    ("empty_matches", "bloom_like", {"pre_tokenizer": sequence(split("x*|$", "MergedWithPrevious"), byte_level())}),
    ("prefix_space", "bloom_like", {"pre_tokenizer": byte_level(True, True)}),
    ("digits", "bloom_like", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, byte_level())}),
    ("digit_runs", "bloom_like", {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False},
                                                            byte_level(False, True))}),
    ("whitespace", "bloom_like", {"pre_tokenizer": sequence({"type": "Whitespace"}, byte_level())}),
    ("whitespace_split", "bloom_like", {"pre_tokenizer": sequence({"type": "WhitespaceSplit"}, byte_level(True))}),
    ("bytes_then_digits", "bloom_like", {"pre_tokenizer": sequence(byte_level(True, True),
                                                                   {"type": "Digits", "individual_digits": True})}),
    ("bytes_of_bytes", "bloom_like", {"pre_tokenizer": sequence(byte_level(), byte_level(False, True))}),
    ("nothing_split", "bloom_like", {"pre_tokenizer": None, "decoder": None}),
    ("nfc", "bloom_like", {"normalizer": normalizer("NFC")}),
    ("nfd", "bloom_like", {"normalizer": normalizer("NFD")}),
    ("nfkc_lower", "bloom_like", {"normalizer": normalizer("NFKC", "Lowercase")}),
    ("nfkd_strip", "bloom_like", {"normalizer": normalizer("NFKD", {"type": "Strip", "strip_left": True,
                                                                    "strip_right": True})}),
    ("lower_nfc", "bloom_like", {"normalizer": normalizer("Lowercase", "NFC")}),
    ("replace", "bloom_like", {"normalizer": normalizer({"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
                                                        {"type": "Prepend", "prepend": "> "})}),
    ("added_tokens", "bloom_like", {"added_tokens": [*SPECIALS, MARK, added("word", 8001, single_word=True),
                                                     added("the", 8002), added("\u00e9", 8003),
                                                     added("hello world", 8004), added("hello", 8005)]}),
    ("added_stripped", "bloom_like", {"added_tokens": [
        *SPECIALS, {**MARK, "lstrip": True, "rstrip": True}, added("<|endoftext|>", 8001, lstrip=True),
        added("1", 8002, rstrip=True), added("a", 8003, lstrip=True, rstrip=True, single_word=True)]}),
    ("added_normalized", "bloom_like", {"normalizer": normalizer("NFKC", "Lowercase"), "added_tokens": [
        *SPECIALS, added("Yesterday", 8000, normalized=True), added("The", 8001),
        added("\u00c5", 8002, normalized=True, lstrip=True), added("[MASK]", 8003, normalized=True, special=True),
        added("\ufb01", 8004, normalized=True, single_word=True)]}),
    ("roberta", "bloom_like", {"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1],
                                                  "trim_offsets": True, "add_prefix_space": True}}),
    ("processors", "bloom_like", {"post_processor": {"type": "Sequence", "processors": [
        byte_level(True), template("both", "$A", "</s>", "$A")]}}),
    ("no_decoder", "bloom_like", {"decoder": None}),
    ("decoders", "bloom_like", {"decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "\u0120\u0120"}, byte_level(),
        {"type": "Strip", "content": " ", "start": 2, "stop": 0}]}}),
    ("characters", "characters", {}),
    ("unknown", "characters", {"model": {"byte_fallback": False, "fuse_unk": False}}),
    ("unknown_fused", "characters", {"model": {"byte_fallback": False}}),
    ("unknown_dropped", "characters", {"model": {"byte_fallback": False, "unk_token": None}}),
    ("subwords", "subwords", {}),
    ("subwords_of_bytes", "subwords", {"pre_tokenizer": byte_level(False, True), "decoder": byte_level()}),
    ("bytes_with_holes", "characters", {"normalizer": None, "pre_tokenizer": byte_level(False, True),
                                        "decoder": byte_level()}),
]
EVERY_CODE_POINT = {"gpt2", "bloom_like", "llama3", "mixed_case", "peculiar", "digits", "whitespace", "nfc", "nfd",
                    "nfkc_lower", "nfkd_strip", "added_stripped"}
