#!/usr/bin/env python3
"""Checks Tessera's event files with TensorBoard's own reader.

Run: $(tools/references/venv.sh) tools/references/check_tensorboard.py build/release/bin/train_core_test
  or: ... check_tensorboard.py FOLDER     (the folder of a run: shows what TensorBoard finds in it)
With the test program: writes the run of tests/data/train/events.json, reads it back and compares every value. Exits with 1
if one differs or a record is broken.
"""
import glob
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data/train/events.json"


def scalars_of(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    texts = {tag: accumulator.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in tags["tensors"]}
    return {tag: [(each.step, each.wall_time, each.value) for each in accumulator.Scalars(tag)] for tag in tags["scalars"]}, texts


def single(value):
    import numpy
    return float(numpy.float32(float(value)))


def check(program):
    reference = json.loads(DATA.read_text())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.check_call([program, "--gtest_filter=TensorBoard.AFileIs*", "--gtest_brief=1"],
                              env={**os.environ, "TESSERA_EVENT_FILES": folder}, stdout=subprocess.DEVNULL)
        files = glob.glob(f"{folder}/*/events.out.tfevents.*")
        assert len(files) == 1, files
        found, texts = scalars_of(os.path.dirname(files[0]))
    names = {"loss": "train/loss", "eval_loss": "eval/loss", "train_samples_per_second": "train/samples_per_second",
             "eval_samples_per_second": "eval/samples_per_second", "grad_norm": "train/grad_norm",
             "learning_rate": "train/learning_rate", "epoch": "train/epoch"}
    num_compared = 0
    for each in reference["run"]:
        for key, value in each.get("record", {}).items():
            tag = names.get(key) or ("system/" + key if each["event"] == "system" else
                                     key if each["event"] in ("metrics", "summary") else None)
            if tag is None:
                continue
            at, wanted = each["at"], single(value)
            same = [v for step, time, v in found[tag] if step == at["step"] and time == at["wall_seconds"]
                    and (v == wanted or (math.isnan(v) and math.isnan(wanted)))]
            assert same, (tag, value, found[tag])
            num_compared += 1
    assert texts == {"args/text_summary": reference["settings"]}, texts
    print(f"TensorBoard reads our events: {num_compared} values and 1 text as written")


if os.path.isdir(sys.argv[1]):
    scalars, all_texts = scalars_of(sys.argv[1])
    for tag in sorted(scalars):
        print(f"{tag}: {len(scalars[tag])} values, last {scalars[tag][-1][2]} at step {scalars[tag][-1][0]}")
    print("texts:", sorted(all_texts))
    sys.exit(0 if scalars else 1)
check(sys.argv[1])
