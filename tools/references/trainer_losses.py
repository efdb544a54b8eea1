#!/usr/bin/env python3
"""What Hugging Face's Trainer computes on a CPU in float32 from a small BLOOM: losses, gradient norms, learning rates.

Run: $(tools/references/venv.sh) tools/references/trainer_losses.py

Writes tests/data/train_command/{model/,trainer_losses.json}. The rows are those of tests/data/squad/sample.jsonl in file
order. Every token of the text but the first is a label: Trainer divides by the number of labels before it shifts them, so
a label for the first token, which nothing predicts, would count only in the divisor.
"""
import json
import os
import sys
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"
import torch
import transformers
from torch.utils.data import SequentialSampler
from transformers import AutoModelForCausalLM, AutoTokenizer, BloomConfig, BloomForCausalLM, Trainer, TrainingArguments

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "data")
OUT = os.path.join(DATA, "train_command")
NUM_ROWS, MAX_LENGTH, NUM_STEPS = 32, 96, 30

CASES = [
    {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "lr_scheduler_type": "linear",
     "warmup_steps": 0, "max_grad_norm": 1.0, "weight_decay": 0.01, "learning_rate": 1e-3},
    {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "lr_scheduler_type": "cosine",
     "warmup_steps": 5, "max_grad_norm": 0.3, "weight_decay": 0.1, "learning_rate": 3e-3},
    {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "lr_scheduler_type": "linear",
     "warmup_steps": 3, "max_grad_norm": 0.3, "weight_decay": 0.01, "learning_rate": 1e-3},
    {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "lr_scheduler_type": "cosine",
     "warmup_steps": 4, "max_grad_norm": 0.5, "weight_decay": 0.0, "learning_rate": 2e-3},
]


class InOrder(Trainer):
    def _get_train_sampler(self, *ignored):
        return SequentialSampler(self.train_dataset)


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    batch = {"input_ids": [], "attention_mask": [], "labels": []}
    for row in rows:
        ids = row["input_ids"]
        padding = longest - len(ids)
        batch["input_ids"].append([0] * padding + ids)
        batch["attention_mask"].append([0] * padding + [1] * len(ids))
        batch["labels"].append([-100] * (padding + 1) + ids[1:])
    return {key: torch.tensor(value) for key, value in batch.items()}


def rows_of(tokenizer):
    with open(os.path.join(DATA, "squad", "sample.jsonl")) as file:
        rows = [json.loads(line) for line in file][:NUM_ROWS]
    text = "Question: {} Context: {} Answer: {}"
    return [{"input_ids": tokenizer(text.format(row["question"], row["context"], row["answers"]["text"][0]),
                                    truncation=True, max_length=MAX_LENGTH)["input_ids"]} for row in rows]


def run(model_folder, rows, case):
    model = AutoModelForCausalLM.from_pretrained(model_folder)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, max_steps=NUM_STEPS, logging_steps=1, save_strategy="no", report_to=[],
                                      use_cpu=True, disable_tqdm=True, **case)
        trainer = InOrder(model=model, args=arguments, train_dataset=rows, data_collator=collate)
        trainer.train()
    logs = [log for log in trainer.state.log_history if "loss" in log]
    return {"arguments": case, "loss": [log["loss"] for log in logs], "grad_norm": [log["grad_norm"] for log in logs],
            "learning_rate": [log["learning_rate"] for log in logs]}


def main():
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(os.path.join(DATA, "squad", "tokenizer"))
    torch.manual_seed(0)
    config = BloomConfig(vocab_size=1024, hidden_size=32, n_layer=2, n_head=4, hidden_dropout=0.0, attention_dropout=0.0,
                         bos_token_id=1, eos_token_id=2, pad_token_id=3)
    folder = os.path.join(OUT, "model")
    BloomForCausalLM(config).save_pretrained(folder)
    rows = rows_of(tokenizer)
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "num_rows": NUM_ROWS,
              "max_length": MAX_LENGTH, "num_steps": NUM_STEPS, "cases": [run(folder, rows, case) for case in CASES]}
    with open(os.path.join(OUT, "trainer_losses.json"), "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
