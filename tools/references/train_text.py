#!/usr/bin/env python3
"""References for what a run prints and scores -> tests/data/train/text.json, squad_metrics.json, deepspeed.json

Run: $(tools/references/venv.sh) tools/references/train_text.py
text.json: repr and round of floats by Python, progress bars by tqdm. squad_metrics.json: answers normalised and scored by
transformers.data.metrics.squad_metrics (the official script of SQuAD 2.0, which scores answers as 1.1's does, except
those that normalise to nothing). deepspeed.json: rates of DeepSpeed's own scheduler classes and of torch's StepLR.
"""
import importlib.util
import json
import os
import pathlib
import platform
import random
import struct
import subprocess
import sys
import types

import torch
import tqdm
import transformers
from tqdm.std import EMA
from transformers.data.metrics import squad_metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "train"
DEEPSPEED = ROOT / ".deps" / "references" / "deepspeed-0.16.9"
rng = random.Random(5)


def write(name, versions, groups):
    parts = [f"{json.dumps(title)}: [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"
             for title, rows in groups.items()]
    (OUT / name).write_text("{\n\"versions\": " + json.dumps(versions) + ",\n" + ",\n".join(parts) + "\n}\n")
    print(name, {title: len(rows) for title, rows in groups.items()}, (OUT / name).stat().st_size, "bytes")


def bits(value):
    return struct.pack(">d", value).hex()


def floats():
    fixed = [0.0, -0.0, 1.0, 5e-5, 1.08e-5, 0.0001, 0.00001, 9.999e-5, 123456789012345.0, 1e15, 9999999999999998.0, 1e16,
             1.5e16, 1e22, 1e100, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 81.46920776367188, 9.937565803527832,
             3.9868627746582033, 2.928, float("nan"), float("inf"), float("-inf"), 4.895, 100.0, -2.5, 0.30000000000000004]
    yield from fixed
    for _ in range(150):
        yield struct.unpack(">d", rng.getrandbits(64).to_bytes(8, "big"))[0]
    for _ in range(150):
        yield rng.uniform(-1, 1) * 10 ** rng.randint(-6, 18)


def rounds():
    for value in [0.00005, 0.00015, 2.675, 1.00005, 0.12345, 1234.56785, 0.5, 2.5, 1e20, -0.00004, 9.99995, 0.0625, 0.03125,
                  2.928, 3.7396125, 1e-12, 5.5e15] + [rng.uniform(0, 1000) for _ in range(100)] + \
                 [rng.randrange(1, 100000) / 32768 for _ in range(100)]:
        for places in (2, 3, 4):
            yield [bits(value), places, bits(round(value, places))]


def bars():
    for n, total, elapsed, rate, ncols, postfix in (
            (0, 93, 0.0, None, None, None), (1, 93, 1.3, None, None, None), (93, 93, 122.4, None, None, None),
            (93, 93, 122.4, 1 / 1.1, 80, None), (30, 93, 33.0, 0.91, 80, None), (30, 93, 33.0, 2.5, 60, "loss=1.23"),
            (7, 1000, 3700.5, None, 100, None), (999, 1000, 86400.0, 0.01, 72, None), (5, 10, 0.001, None, 40, None),
            (50, 100, 10.0, 123456.7, 70, None), (1, 3, 10.0, None, 30, None), (2, 3, 10.0, None, 20, None)):
        bar = tqdm.tqdm.format_meter(n, total, elapsed, ncols=ncols, rate=rate, postfix=postfix)
        yield [n, total, elapsed, rate, ncols, postfix, bar]


def smoothed():
    ema_n, ema_t = EMA(0.3), EMA(0.3)
    for number, seconds in ((1, 2.0), (1, 1.0), (3, 2.5), (1, 0.1), (10, 30.0)):
        yield [number, seconds, ema_n(number) / ema_t(seconds)]


WORDS = ["the", "a", "an", "The", "A", "AN", "cat", "cats", "thea", "an-other", "other", "U.S.", "US", "don't", "dont", "$1,000",
         "1000", "1", "2", "café", "CAFÉ", "Straße", "ΟΔΥΣΣΕΥΣ", "Σ", "İstanbul", "“quoted”", "naïve", "日本", "the日本", "a_b", "_a_", "a\u0301",
         "\u00a0", "\u3000", "\u200b", "\t", "\n", "\x1f", "--", "...", "’s", "x²", "½", "the½", "ⅷ", "ª", "a\u00adn", "№5",
         "ǅ", "K", "Ꭰ", "ﬁ"]
FIXED = [("", [""]), ("", ["x"]), ("the", ["a"]), ("the", [""]), ("The cat!", ["cat", "a cat"]), ("cat cat dog", ["cat dog dog"]),
         ("Santa Clara, California", ["Santa Clara", "Levi's Stadium in Santa Clara, California", "Levi's Stadium"]),
         ("Denver Broncos", ["Denver Broncos", "Denver Broncos", "Broncos"]), ("1,000 people", ["1000"]), ("no", ["yes", "NO."])]


def scores():
    def phrase(longest):
        return "".join(rng.choice(WORDS) + rng.choice([" ", " ", " ", "", "  ", "-", ", "]) for _ in range(rng.randint(0, longest)))
    cases = list(FIXED)
    for _ in range(500):
        golds = [phrase(5) for _ in range(rng.randint(1, 3))]
        cases.append((rng.choice(golds + [phrase(6)] * 2), golds))
    for prediction, golds in cases:
        yield [prediction, golds, squad_metrics.normalize_answer(prediction),
               max(squad_metrics.compute_exact(gold, prediction) for gold in golds),
               max(float(squad_metrics.compute_f1(gold, prediction)) for gold in golds)]


def load_deepspeed():
    """Loads only its scheduler file: the package itself needs GPU tools."""
    if not DEEPSPEED.exists():
        subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                               "--target", str(DEEPSPEED), "deepspeed==0.16.9"], env={**os.environ, "DS_BUILD_OPS": "0"})
    utils = types.ModuleType("deepspeed.utils")
    utils.logger = types.SimpleNamespace(warning=lambda *_: None, info=lambda *_: None)
    sys.modules["deepspeed"] = types.ModuleType("deepspeed")
    sys.modules["deepspeed.utils"] = utils
    spec = importlib.util.spec_from_file_location("lr_schedules", DEEPSPEED / "deepspeed/runtime/lr_schedules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def optimizer(rate):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


def advance(scheduler, sgd, times):
    rates = [sgd.param_groups[0]["lr"]]
    for _ in range(times):
        sgd.step()
        scheduler.step()
        rates.append(sgd.param_groups[0]["lr"])
    return rates


def deepspeed():
    module = load_deepspeed()
    for shape in ("log", "linear"):
        for low, high, warmup, total in ((0.0, 1e-3, 10, 30), (1e-6, 5e-5, 3, 40), (0, 3e-4, 0, 12), (0, 1e-3, 1, 5),
                                         (0.0, 1e-3, 20, 20)):
            options = {"warmup_min_lr": low, "warmup_max_lr": high, "warmup_num_steps": warmup, "warmup_type": shape}
            sgd = optimizer(high)
            yield {"kind": "WarmupLR", **options, "total_num_steps": total,
                   "rates": advance(module.WarmupLR(sgd, **options), sgd, total)}
            sgd = optimizer(high)
            yield {"kind": "WarmupDecayLR", **options, "total_num_steps": total,
                   "rates": advance(module.WarmupDecayLR(sgd, total, **options), sgd, total)}


def step_lr():
    for rate, size, gamma in ((0.1, 30, 0.1), (0.001, 1, 0.1), (0.001, 3, 0.97), (0.05, 2, 0.3)):
        sgd = optimizer(rate)
        yield {"rate": rate, "step_size": size, "gamma": gamma,
               "rates": advance(torch.optim.lr_scheduler.StepLR(sgd, size, gamma), sgd, 95 if size == 30 else 20)}


write("text.json", {"python": platform.python_version(), "tqdm": tqdm.__version__},
      {"floats": [[bits(value), repr(value)] for value in floats()], "rounds": list(rounds()), "bars": list(bars()),
       "smoothed": list(smoothed())})
write("squad_metrics.json", {"transformers": transformers.__version__}, {"answers": list(scores())})
write("deepspeed.json", {"deepspeed": "0.16.9", "torch": torch.__version__.split("+")[0]},
      {"warmup": list(deepspeed()), "step_lr": list(step_lr())})
