#!/usr/bin/env python3
"""References for the arithmetic of the training loop, from the Hugging Face Trainer itself -> tests/data/train/*.json

Run: $(tools/references/venv.sh) tools/references/trainer_steps.py

Two releases are used. 4.50.3 is the last one that counts `len // accumulation` updates per epoch (500 rows at 4 x 4 over 3
epochs: 93 steps) and logs the learning rate after the step; the venv's (4.52 and later) also counts the short last group
and logs the rate of the step. The older one is installed next to the venv, in .deps/references/transformers-4.50.3.
Every case is a real Trainer.train() on a model of one weight whose losses are the rows' own numbers.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "train"
OLD = ROOT / ".deps" / "references" / "transformers-4.50.3"

if len(sys.argv) == 1:  # once per release, each in its own process
    if not OLD.exists():
        subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                               "--target", str(OLD), "transformers==4.50.3", "tokenizers>=0.21,<0.22"])
    subprocess.check_call([sys.executable, __file__, "4.50"], env={**os.environ, "PYTHONPATH": str(OLD)})
    subprocess.check_call([sys.executable, __file__, "late"])
    sys.exit()

import logging  # noqa: E402
import warnings  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments  # noqa: E402
from transformers.trainer_utils import EvalLoopOutput  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)


def loss_of_row(row):
    return 0.5 + (row * 37 % 101) / 64  # exact in float32


class Rows(torch.utils.data.Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, row):
        return {"loss": torch.tensor(loss_of_row(row)), "row": row}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, loss, row):
        return {"loss": loss.mean() + 0 * self.weight.sum()}


class Recorder(TrainerCallback):
    def __init__(self):
        self.events, self.groups, self.epochs, self.used, self.after = [], [], [], [], []
        self.num_batches = 0

    def on_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        self.used.append(optimizer.param_groups[0]["lr"])

    def on_step_end(self, args, state, control, lr_scheduler=None, **kwargs):
        self.groups.append(self.num_batches)
        self.num_batches = 0
        self.epochs.append(state.epoch)
        self.after.append(lr_scheduler.get_last_lr()[0])

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.events.append(["log", state.global_step, state.epoch, logs["loss"], logs["learning_rate"]])

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        self.events.append(["evaluate", state.global_step, state.epoch])

    def on_save(self, args, state, control, **kwargs):
        kept = sorted(int(each.name.split("-")[1]) for each in pathlib.Path(args.output_dir).glob("checkpoint-*"))
        best = state.best_model_checkpoint
        best = None if best is None else int(best.rsplit("-", 1)[1])
        self.events.append(["save", state.global_step, state.epoch, kept, best, state.best_metric])


class TinyTrainer(Trainer):
    metric_sequence = None

    def _get_train_sampler(self, *args):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def training_step(self, *args, **kwargs):
        self.recorder.num_batches += 1
        return super().training_step(*args, **kwargs)

    def evaluation_loop(self, dataloader, description, *args, **kwargs):
        metrics = {"eval_loss": 1.0}
        if self.metric_sequence:
            metrics[self.metric_name] = self.metric_sequence.pop(0)
        return EvalLoopOutput(predictions=None, label_ids=None, metrics=metrics, num_samples=len(dataloader.dataset))


def run(rows, metrics=None, patience=None, threshold=0.0, callback=None, **arguments):
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(output_dir=folder, report_to=[], use_cpu=True, disable_tqdm=True, seed=1,
                                 dataloader_pin_memory=False, remove_unused_columns=False, **arguments)
        trainer = TinyTrainer(Model(), args, train_dataset=Rows(rows), eval_dataset=Rows(8))
        trainer.recorder = Recorder()
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        if patience is not None:  # before the recorder, as users add it to the list
            trainer.add_callback(EarlyStoppingCallback(patience, threshold))
        trainer.add_callback(trainer.recorder)
        if callback:
            trainer.add_callback(callback)
        if metrics:
            name = args.metric_for_best_model or "loss"
            trainer.metric_name = name if name.startswith("eval_") else f"eval_{name}"
            trainer.metric_sequence = list(metrics)
        result = trainer.train()
        return trainer, trainer.recorder, result


def step_cases():
    for rows, batch, accumulation in ((1, 1, 1), (7, 2, 1), (10, 2, 2), (10, 3, 3), (500, 4, 4), (17, 2, 4), (3, 1, 8),
                                      (12, 1, 4), (13, 1, 4), (14, 1, 4), (15, 1, 4), (25, 4, 3), (23, 4, 3), (9, 2, 16), (21, 2, 4), (31, 3, 4)):
        for epochs, max_steps in ((1, -1), (3, -1), (0.5, -1), (2.5, -1), (1.01, -1), (3, 1), (3, 5), (1, 20)):
            if rows == 500 and (epochs, max_steps) not in ((3, -1), (2.5, -1), (1, 20)):
                continue
            yield rows, batch, accumulation, epochs, max_steps


def steps():
    for rows, batch, accumulation, epochs, max_steps in step_cases():
        trainer, recorder, _ = run(
            rows, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulation, num_train_epochs=epochs,
            max_steps=max_steps, save_strategy="no", logging_strategy="no")
        batches = len(trainer.get_train_dataloader())
        # 4.50 takes the size of the last group from the number of rows, not batches. If these disagree it drops batches,
        # and the gradients of the others go into the first update of the next epoch.
        groups = [min(accumulation, batches - first) for first in range(0, batches, accumulation)]
        loses = any(size != groups[number % len(groups)] for number, size in enumerate(recorder.groups))
        yield {"rows": rows, "batch": batch, "batches": batches, "accumulation": accumulation, "epochs": epochs,
               "max_steps": max_steps, "total_steps": trainer.state.max_steps,
               "num_epochs": trainer.state.num_train_epochs, "loses_batches": loses,
               "groups": recorder.groups, "fractions": recorder.epochs}


def flow_cases():
    base = dict(rows=20, per_device_train_batch_size=2, num_train_epochs=3)  # 30 steps
    yield {**base}
    for steps in (1, 4, 7, 30, 31, 0.1, 0.07, 0.34, 0.99):
        yield {**base, "logging_steps": steps}
        yield {**base, "logging_steps": 5, "eval_strategy": "steps", "eval_steps": steps, "save_strategy": "no"}
        yield {**base, "logging_steps": 5, "save_strategy": "steps", "save_steps": steps}
    for interval in ("no", "epoch", "steps"):
        for other in ("no", "epoch", "steps"):
            yield {**base, "logging_strategy": interval, "eval_strategy": other, "save_strategy": interval,
                   "logging_steps": 8, "save_steps": 9}
    yield {**base, "logging_steps": 10, "logging_first_step": True}
    yield {**base, "logging_strategy": "epoch", "logging_first_step": True}
    yield {**base, "logging_steps": 10, "eval_strategy": "steps", "eval_steps": 5, "eval_delay": 12}
    yield {**base, "logging_steps": 10, "eval_strategy": "epoch", "eval_delay": 2}
    yield {**base, "logging_steps": 10, "eval_strategy": "epoch", "eval_delay": 1.5}
    yield {**base, "logging_steps": 10, "eval_strategy": "epoch", "eval_on_start": True}
    yield {**base, "gradient_accumulation_steps": 4, "logging_steps": 2, "eval_strategy": "epoch", "save_strategy": "epoch"}
    yield {**base, "rows": 500, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "logging_steps": 10,
           "eval_strategy": "epoch", "save_strategy": "epoch"}
    yield {**base, "max_steps": 13, "logging_steps": 4, "eval_strategy": "epoch", "save_strategy": "steps", "save_steps": 6}
    # Which folders are kept, which model is best, when it stops.
    falling, wavy = [9, 8, 7, 6, 5, 4], [5, 3, 4, 4.5, 2.5, 7]
    for limit in (1, 2, 3):
        for metrics in (falling, wavy, falling[::-1]):
            for best in (False, True):
                yield {**base, "num_train_epochs": 6, "save_strategy": "epoch", "eval_strategy": "epoch",
                       "save_total_limit": limit, "load_best_model_at_end": best, "metrics": metrics}
    yield {**base, "num_train_epochs": 6, "save_strategy": "epoch", "eval_strategy": "epoch", "save_total_limit": 2,
           "load_best_model_at_end": True, "metrics": wavy, "metric_for_best_model": "f1"}
    yield {**base, "num_train_epochs": 6, "save_strategy": "epoch", "eval_strategy": "epoch", "save_total_limit": 2,
           "load_best_model_at_end": True, "metrics": wavy, "metric_for_best_model": "eval_f1", "greater_is_better": False}
    yield {**base, "num_train_epochs": 6, "save_strategy": "best", "eval_strategy": "epoch", "metrics": wavy,
           "metric_for_best_model": "loss", "load_best_model_at_end": True}
    yield {**base, "num_train_epochs": 6, "save_strategy": "steps", "save_steps": 20, "eval_strategy": "steps",
           "eval_steps": 10, "metrics": wavy, "load_best_model_at_end": True, "save_total_limit": 1}
    for patience in (1, 2, 3):
        for threshold in (0.0, 1.0, 1.5):
            yield {**base, "num_train_epochs": 6, "save_strategy": "epoch", "eval_strategy": "epoch", "metrics": wavy,
                   "load_best_model_at_end": True, "patience": patience, "threshold": threshold}
    yield {**base, "num_train_epochs": 6, "save_strategy": "steps", "save_steps": 4, "eval_strategy": "steps",
           "eval_steps": 4, "metrics": [5, float("nan"), 4, 4, 4], "load_best_model_at_end": True, "patience": 3}


def flow():
    for case in flow_cases():
        trainer, recorder, result = run(**case)
        # JSON has no nan: use a string, which the reader understands.
        shown = {**case, "metrics": [str(each) if each != each else each for each in case["metrics"]]} \
            if "metrics" in case else case
        yield {**shown, "total_steps": trainer.state.max_steps, "done": trainer.state.global_step,
               "events": recorder.events, "best_metric": trainer.state.best_metric,
               "train_loss": result.metrics["train_loss"]}


def schedule_cases():
    for rate, total in ((5e-5, 93), (1e-3, 30), (0.3, 7)):
        for warmup in ({}, {"warmup_steps": 5}, {"warmup_ratio": 0.1}, {"warmup_ratio": 0.07}, {"warmup_ratio": 1.0}):
            for kind in ("linear", "cosine", "constant", "constant_with_warmup", "cosine_with_restarts"):
                if (kind == "constant" and warmup) or (total == 7 and warmup == {"warmup_ratio": 0.07}):
                    continue
                yield rate, total, kind, warmup, {}
            if warmup != {"warmup_ratio": 1.0}:  # divides by zero there
                yield rate, total, "polynomial", warmup, {}
        yield rate, total, "cosine_with_restarts", {"warmup_steps": 3}, {"num_cycles": 3}
        yield rate, total, "cosine", {}, {"num_cycles": 1.5}
        yield rate, total, "polynomial", {}, {"power": 2.0, "lr_end": 1e-6}
        yield rate, total, "inverse_sqrt", {"warmup_steps": 4}, {}
        yield rate, total, "inverse_sqrt", {}, {}
        yield rate, total, "cosine_with_min_lr", {"warmup_steps": 2}, {"min_lr_rate": 0.1}
        yield rate, total, "cosine_with_min_lr", {}, {"min_lr": 1e-5}


def schedules():
    for rate, total, kind, warmup, kwargs in schedule_cases():
        trainer, recorder, _ = run(
            total, per_device_train_batch_size=1, num_train_epochs=1, learning_rate=rate, lr_scheduler_type=kind,
            lr_scheduler_kwargs=kwargs, save_strategy="no", logging_steps=1, **warmup)
        logged = [event[4] for event in recorder.events if event[0] == "log"]
        yield {"learning_rate": rate, "total_steps": total, "kind": kind, **warmup, **kwargs,
               "used": recorder.used, "last": recorder.after[-1],
               "logged": "after" if logged == recorder.after else "used" if logged == recorder.used else logged}


def trainer_state():
    """The file from a checkpoint of the Trainer, unchanged."""
    case = dict(rows=20, per_device_train_batch_size=2, num_train_epochs=6, save_strategy="epoch", eval_strategy="epoch",
                logging_steps=10, metrics=[5, 3, 4], load_best_model_at_end=True, patience=2)
    kept = {}

    class Keeper(TrainerCallback):
        def on_save(self, args, state, control, **kwargs):
            if state.global_step == 20:
                file = pathlib.Path(args.output_dir) / "checkpoint-20" / "trainer_state.json"
                kept.update(json.loads(file.read_text()))

    run(**case, callback=Keeper())
    kept["best_model_checkpoint"] = "out/checkpoint-20"  # not this machine's path
    return kept


def write(name, groups):
    lines = []
    for title, cases in groups.items():
        rows = ",\n".join(json.dumps(case) for case in cases)
        lines.append(f"{json.dumps(title)}: [\n{rows}\n]")
    versions = json.dumps({"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]})
    (OUT / name).write_text("{\n\"versions\": " + versions + ",\n" + ",\n".join(lines) + "\n}\n")
    print(name, {title: len(cases) for title, cases in groups.items()}, (OUT / name).stat().st_size, "bytes")


OUT.mkdir(exist_ok=True)
if sys.argv[1] != "4.50":
    (OUT / "trainer_state.json").write_text(json.dumps({"state": trainer_state()}, indent=1) + "\n")
if sys.argv[1] == "4.50":
    write("trainer_4_50.json", {"steps": list(steps()), "flow": list(flow()), "schedules": list(schedules())})
else:
    late = [{key: case[key] for key in ("kind", "learning_rate", "total_steps", "logged")} for case in schedules()]
    write("trainer_late.json", {"steps": list(steps()), "logged": late[:5]})
