#!/usr/bin/env python3
"""Checkpoints of other programs, taken in the middle of a run, and the losses with which those runs continue.

Run: $(tools/references/venv.sh) tools/references/foreign_checkpoints.py [CASE...]

Needs DeepSpeed besides the packages of requirements.txt: DS_BUILD_OPS=0 pip install --no-build-isolation deepspeed. It
runs on CPUs with torch's Adam, so nothing is compiled.

Writes tests/data/foreign/: the tiny models, one folder per case, and numbers.json. Cases whose name begins with "qwen3_"
train a Qwen3, the others a BLOOM. Each case trains its model on the same rows in the same order (those of tests/data/squad/sample.jsonl, as in trainer_losses.py), saves after SAVE_STEP steps
and goes on. The processes of a case share 4 rows per step.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.update(OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu", TOKENIZERS_PARALLELISM="false")
import torch
import torch.distributed as dist
import transformers
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, TrainerState, TrainingArguments

import trainer_losses
from trainer_losses import InOrder, collate, rows_of

OUT = os.path.join(trainer_losses.DATA, "foreign")
NUM_STEPS, SAVE_STEP, ROWS_PER_STEP = 8, 5, 4
# A large rate, so that a run that lost a moment or the schedule's place shows it in the next loss.
ARGUMENTS = {"lr_scheduler_type": "linear", "warmup_steps": 2, "max_grad_norm": 1.0, "weight_decay": 0.1,
             "learning_rate": 5e-2}
# name: number of processes
CASES = {"trainer": 1, "trainer_bin": 1, "fsdp": 2, "dcp": 2, "zero1": 2, "zero2": 4, "zero3": 4, "zero2_fp16": 2,
         "qwen3_trainer": 1, "qwen3_fsdp": 2, "qwen3_zero3": 2}
SHARED = {"vocab_size": 1024, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3, "initializer_range": 0.1}
MODELS = {
    # 6 is no multiple of 4 ranks: partitions have padding.
    "bloom": AutoConfig.for_model("bloom", hidden_size=6, n_layer=2, n_head=2, hidden_dropout=0.0, attention_dropout=0.0,
                                  **SHARED),
    "qwen3": AutoConfig.for_model("qwen3", hidden_size=6, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2,
                                  num_key_value_heads=1, head_dim=4, max_position_embeddings=128,
                                  tie_word_embeddings=True, **SHARED)}
family = "bloom"  # of the process's case


def model_folder():
    return os.path.join(OUT, "model" if family == "bloom" else family + "_model")


def rows():
    return rows_of(AutoTokenizer.from_pretrained(os.path.join(trainer_losses.DATA, "squad", "tokenizer")))


class Recorded(InOrder):
    """Keeps each step's loss: the log's are rounded."""

    losses = []

    def training_step(self, *arguments, **named):
        loss = super().training_step(*arguments, **named)
        self.losses.append(float(loss))
        return loss


def by_trainer(folder, **more):
    arguments = TrainingArguments(folder, max_steps=NUM_STEPS, logging_steps=1, save_strategy="steps",
                                  save_steps=SAVE_STEP, save_total_limit=None, report_to=[], use_cpu=True,
                                  disable_tqdm=True, per_device_train_batch_size=ROWS_PER_STEP, **ARGUMENTS, **more)
    trainer = Recorded(model=AutoModelForCausalLM.from_pretrained(model_folder()), args=arguments, train_dataset=rows(),
                       data_collator=collate)
    trainer.train()
    norms = [float(log["grad_norm"]) for log in trainer.state.log_history if "grad_norm" in log]
    return {"loss": trainer.losses, "grad_norm": norms}


def trainer(folder):
    return by_trainer(folder)


def trainer_bin(folder):
    return by_trainer(folder, save_safetensors=False)


def decays(name):
    return not name.endswith("bias") and "norm" not in name and "ln_f" not in name


def adamw(model):
    """Hugging Face's groups and schedule."""
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if decays(n)], "weight_decay": ARGUMENTS["weight_decay"]},
              {"params": [p for n, p in named if not decays(n)], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=ARGUMENTS["learning_rate"])
    return optimizer, transformers.get_linear_schedule_with_warmup(optimizer, ARGUMENTS["warmup_steps"], NUM_STEPS)


def train(model, update, save):
    """A loop of one's own: `update` takes a loss and returns the gradient's norm."""
    data, losses, norms, num_ranks = rows(), [], [], dist.get_world_size()
    num_own = ROWS_PER_STEP // num_ranks
    for step in range(1, NUM_STEPS + 1):
        start = (step - 1) * ROWS_PER_STEP
        batches = [collate(data[start + num_own * r:start + num_own * (r + 1)]) for r in range(num_ranks)]
        count = sum(int((batch["labels"] != -100).sum()) for batch in batches)
        batch = batches[dist.get_rank()]
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        total = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), batch["labels"][:, 1:].flatten(),
                                            reduction="sum", ignore_index=-100)
        norm = float(update(total * (num_ranks / count)))
        norms.append(norm if math.isfinite(norm) else None)
        total = total.detach()
        dist.all_reduce(total)
        losses.append(float(total / count))
        if step == SAVE_STEP:
            save()
    dist.destroy_process_group()
    return {"loss": losses, "grad_norm": norms}


def save_trainer_state(folder):
    """What the Trainer writes beside the folders of FSDP and DeepSpeed."""
    if dist.get_rank() == 0:
        state = TrainerState(global_step=SAVE_STEP, max_steps=NUM_STEPS, epoch=SAVE_STEP / NUM_STEPS, num_train_epochs=1,
                             train_batch_size=ROWS_PER_STEP // dist.get_world_size(), logging_steps=1)
        state.save_to_json(os.path.join(folder, "trainer_state.json"))


def sharded():
    """The model under FSDP2."""
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group("gloo")
    model = AutoModelForCausalLM.from_pretrained(model_folder())
    for block in model.transformer.h if family == "bloom" else model.model.layers:
        fully_shard(block)
    fully_shard(model)
    optimizer, schedule = adamw(model)

    def update(loss):
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), ARGUMENTS["max_grad_norm"]).full_tensor()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        return norm

    return model, optimizer, schedule, update


def dcp(folder):
    """torch.distributed.checkpoint, as its guide shows it."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict
    model, optimizer, _, update = sharded()

    def save():
        state, optimizer_state = get_state_dict(model, optimizer)
        checkpoint.save({"model": state, "optim": optimizer_state}, checkpoint_id=folder)

    return train(model, update, save)


def fsdp(folder):
    """accelerate's folders of shards. Its Accelerator refuses FSDP on CPUs, so its two functions are called directly."""
    from types import SimpleNamespace
    from accelerate import PartialState
    from accelerate.utils import FullyShardedDataParallelPlugin, save_fsdp_model, save_fsdp_optimizer
    model, optimizer, schedule, update = sharded()
    PartialState(cpu=True)
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type="SHARDED_STATE_DICT")
    accelerator = SimpleNamespace(process_index=dist.get_rank(), num_processes=dist.get_world_size())

    def save():
        save_fsdp_model(plugin, accelerator, model, folder)
        save_fsdp_optimizer(plugin, accelerator, optimizer, model, folder)
        save_trainer_state(folder)
        if dist.get_rank() == 0:
            torch.save(schedule.state_dict(), os.path.join(folder, "scheduler.pt"))

    return train(model, update, save)


def zero(stage, folder, is_fp16=False):
    """DeepSpeed's own engine: the Trainer's integration takes two CPU processes for one each."""
    import deepspeed
    deepspeed.init_distributed("gloo")
    config = {"train_micro_batch_size_per_gpu": ROWS_PER_STEP // dist.get_world_size(),
              "gradient_clipping": ARGUMENTS["max_grad_norm"], "zero_allow_untested_optimizer": True,
              "zero_optimization": {"stage": stage, "sub_group_size": 200}}
    if is_fp16:
        # DeepSpeed takes CPUs for unable of float16, which torch computes in. Its scale overflows in the first steps.
        deepspeed.get_accelerator().is_fp16_supported = lambda: True
        config["fp16"] = {"enabled": True, "initial_scale_power": 20, "loss_scale_window": 3, "hysteresis": 1}
    model = AutoModelForCausalLM.from_pretrained(model_folder())
    optimizer, schedule = adamw(model)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, lr_scheduler=schedule, config=config)

    def update(loss):
        engine.backward(loss)
        engine.step()
        return engine.get_global_grad_norm()

    def save():
        engine.save_checkpoint(folder)
        if stage == 2 and not is_fp16:
            save_trainer_state(folder)

    return train(engine, update, save)


def split(case):
    """The family and the program of a case."""
    return ("qwen3", case[len("qwen3_"):]) if case.startswith("qwen3_") else ("bloom", case)


def run_case(case, folder):
    global family
    family, name = split(case)
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    if name.startswith("zero"):
        numbers = zero(int(name[4]), folder, name.endswith("fp16"))
    else:
        numbers = globals()[name](folder)
    if int(os.environ.get("RANK", 0)) == 0:
        with open(folder + ".json", "w") as file:
            json.dump(numbers, file)


def make_models():
    global family
    for family, config in MODELS.items():
        if not os.path.exists(model_folder()):
            torch.manual_seed(0)
            AutoModelForCausalLM.from_config(config).save_pretrained(model_folder())


def main():
    chosen = sys.argv[1:] or list(CASES)
    make_models()
    file_name = os.path.join(OUT, "numbers.json")
    result = {}
    if os.path.exists(file_name):
        with open(file_name) as file:
            result = json.load(file)
    result.update({"transformers": transformers.__version__, "torch": torch.__version__, "num_steps": NUM_STEPS,
                   "save_step": SAVE_STEP, "num_rows": trainer_losses.NUM_ROWS, "max_length": trainer_losses.MAX_LENGTH,
                   "arguments": ARGUMENTS})
    for name in chosen:
        with tempfile.TemporaryDirectory() as parent:
            folder = os.path.join(parent, "run")
            launch = [] if CASES[name] == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node",
                                                  str(CASES[name])]
            subprocess.run([sys.executable, *launch, __file__, "run_case", name, folder], check=True)
            with open(folder + ".json") as file:
                result.setdefault("cases", {})[name] = json.load(file)
            target = os.path.join(OUT, name)
            shutil.rmtree(target, ignore_errors=True)
            checkpoint = os.path.join(folder, f"checkpoint-{SAVE_STEP}")
            # Without what no reader needs: DeepSpeed's scripts, the Trainer's arguments.
            shutil.copytree(checkpoint if os.path.exists(checkpoint) else folder, target,
                            ignore=shutil.ignore_patterns("*.py", "training_args.bin"))
    with open(file_name, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run_case"]:
        sys.exit(run_case(*sys.argv[2:]))
    sys.exit(main())
