"""Compares `tessera tokenize` with `tokenizers` on the published vocabularies that real_vocabularies.py made.

    $(tools/references/venv.sh vocabularies) tools/references/check_vocabularies.py TESSERA FOLDER [--strings 5000]

For each FOLDER/NAME/tokenizer.json: ids of all texts of odd_strings.py with and without special tokens, the text that
comes back of them in both ways, and the text of random ids, which no text gives. Ends with 1 if anything differs, after
showing the first differences.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import tokenizers
from tokenizers import Tokenizer

import random_text
from odd_strings import strings


def tessera(program, folder, values, *flags):
    """One JSON value per line in, one out."""
    lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    run = subprocess.run([program, "tokenize", "--tokenizer", str(folder), *flags], input=lines.encode(),
                         capture_output=True)
    if run.returncode != 0:
        sys.exit(f"{folder}: {run.stderr.decode()}")
    return [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]]


def random_ids(tokenizer, count):
    """Short rows of any ids, half of them among the first ones, which are bytes in many vocabularies."""
    random = random_text.Random(77)
    size = tokenizer.get_vocab_size()
    return [[random.below(size if random.below(2) else min(size, 1300)) for _ in range(1 + random.below(12))]
            for _ in range(count)]


def num_different(what, inputs, ours, theirs):
    different = [i for i in range(len(theirs)) if ours[i] != theirs[i]]
    for i in different[:3]:
        print(f"  {what} differ: {inputs[i]!r}\n    tessera    {ours[i]!r}\n    tokenizers {theirs[i]!r}")
    return len(different) + abs(len(ours) - len(theirs))


def check(program, folder, count):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    added = [token.content for _, token in sorted(tokenizer.get_added_tokens_decoder().items())]
    texts = strings(count, added[:30] + added[-30:])
    ids = [tokenizer.encode(text).ids for text in texts]
    bare = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    rows = ids + random_ids(tokenizer, count // 5)
    shown = [tokenizer.decode(row, skip_special_tokens=False) for row in rows]
    plain = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    wrong = num_different("ids", texts, tessera(program, folder, texts), ids)
    wrong += num_different("ids without special tokens", texts,
                           tessera(program, folder, texts, "--no_special_tokens"), bare)
    wrong += num_different("decoded texts", rows, tessera(program, folder, rows, "--decode"), shown)
    wrong += num_different("decoded texts without special tokens", rows,
                           tessera(program, folder, rows, "--decode", "--no_special_tokens"), plain)
    print(f"{folder.name}: {tokenizer.get_vocab_size()} tokens; {len(texts)} texts, {sum(map(len, texts))} characters, "
          f"{sum(map(len, ids))} ids, {len(rows)} rows decoded in two ways: "
          f"{'all equal' if wrong == 0 else f'{wrong} different'}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--strings", type=int, default=5000)
    options = parser.parse_args()
    print(f"tessera tokenize against tokenizers {tokenizers.__version__}")
    folders = sorted(path.parent for path in options.folder.glob("*/tokenizer.json"))
    if not folders:
        sys.exit(f"{options.folder}: no tokenizer.json in its folders; real_vocabularies.py makes them")
    sys.exit(1 if sum(check(options.program, folder, options.strings) for folder in folders) else 0)


main()
