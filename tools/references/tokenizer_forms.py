"""What the scripts that make small tokenizers share: files with changes, and the original's answers as hashes."""

import hashlib
import json
import pathlib

from tokenizers import Tokenizer

OUT = pathlib.Path(__file__).parents[2] / "tests/data/tokenizer"


def as_file(tokenizer, merges_as_lines):
    content = json.loads(tokenizer.to_str())
    if merges_as_lines:  # the format of BLOOM's own file
        content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    return content


def changed(base, changes):
    """The base file with top-level parts replaced; "model" only key by key."""
    content = {**base, **{key: value for key, value in changes.items() if key != "model"}}
    content["model"] = {**base["model"], **changes.get("model", {})}
    return Tokenizer.from_str(json.dumps(content))


def answers(tokenizer, text):
    ids = tokenizer.encode(text).ids
    bare = tokenizer.encode(text, add_special_tokens=False).ids
    return [",".join(map(str, ids)), ",".join(map(str, bare)), tokenizer.decode(ids, skip_special_tokens=False),
            tokenizer.decode(ids, skip_special_tokens=True)]


def digest(tokenizer, texts):
    """What tokenizer_reference_test.cc also computes: ids, ids without special tokens, both ways to decode."""
    total = hashlib.sha256()
    for text in texts:
        for part in answers(tokenizer, text):
            total.update(part.encode() + b"\0")
    return total.hexdigest()[:16]


def write(name, content, **how):
    path = OUT / name
    path.write_text(json.dumps(content, ensure_ascii=False, **how) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size} bytes")
