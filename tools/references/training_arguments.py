#!/usr/bin/env python3
"""Names, types and defaults of Hugging Face's TrainingArguments -> tests/data/train_settings/training_arguments.json,
or, by transformers 5, training_arguments_5.json

One row per argument of HfArgumentParser, in its order. Tests use it to check what Tessera does with each.
"""
import dataclasses
import enum
import json
import pathlib
import typing

import transformers

MAJOR = transformers.__version__.split(".")[0]
FILE = (pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "train_settings" /
        ("training_arguments.json" if MAJOR == "4" else f"training_arguments_{MAJOR}.json"))


def kind_of(annotation):
    """bool, int, float or str: the type on a command line."""
    options = [each for each in typing.get_args(annotation) or (annotation,) if each is not type(None)]
    for kind in (bool, int, float):
        if options[0] is kind:
            return kind.__name__
    return "str"


def default_of(field):
    value = field.default
    if value is dataclasses.MISSING:
        value = field.default_factory()
    if isinstance(value, enum.Enum):
        value = value.value
    return None if isinstance(value, list) else value


def main():
    rows = [{"name": field.name, "type": kind_of(field.type), "default": default_of(field)}
            for field in dataclasses.fields(transformers.TrainingArguments) if field.init]
    FILE.parent.mkdir(parents=True, exist_ok=True)
    text = ",\n".join("    " + json.dumps(row) for row in rows)
    FILE.write_text(f'{{\n  "made_with": {{"transformers": "{transformers.__version__}"}},\n  "arguments": [\n{text}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
