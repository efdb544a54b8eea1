"""Hugging Face's Trainer on the rows that bench/trainer_bench.sh gives `tessera train`: one JSON line at the end.

usage: trainer_bench.py CONFIG.json TOKENIZER_FOLDER SQUAD.json NUM_ROWS padded|longest
"""
import json
import statistics
import sys
import tempfile
import time

import torch
import transformers
from transformers import (AutoTokenizer, BloomConfig, BloomForCausalLM, Trainer, TrainerCallback,
                          TrainingArguments)

MAX_LENGTH = 512
LOGGING_STEPS = 5
ROWS_A_STEP = 16


def questions_of(path):
    with open(path) as file:
        if path.endswith(".jsonl"):
            for line in file:
                row = json.loads(line)
                yield row["question"], row["context"], row["answers"]["text"][0]
            return
        for article in json.load(file)["data"]:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    yield qa["question"], paragraph["context"], qa["answers"][0]["text"]


def rows_of(path, tokenizer, num_rows):
    rows = []
    for question, context, answer in questions_of(path):
        prompt = tokenizer(f"Question: {question} Context: {context} Answer:")["input_ids"]
        ids = (prompt + tokenizer(f" {answer}")["input_ids"] + [2])[:MAX_LENGTH]
        labels = [-100] * min(len(prompt), MAX_LENGTH) + ids[len(prompt):]
        rows.append({"input_ids": ids, "labels": labels})
        if len(rows) == num_rows:
            break
    return rows


def collator(padding):
    def collate(rows):
        length = MAX_LENGTH if padding == "padded" else max(len(row["input_ids"]) for row in rows)
        batch = {"input_ids": [], "attention_mask": [], "labels": []}
        for row in rows:
            rest = length - len(row["input_ids"])
            batch["input_ids"].append(row["input_ids"] + [3] * rest)
            batch["attention_mask"].append([1] * len(row["input_ids"]) + [0] * rest)
            batch["labels"].append(row["labels"] + [-100] * rest)
        return {key: torch.tensor(value) for key, value in batch.items()}

    return collate


class Clock(TrainerCallback):
    """When each line was logged, which waits for the GPU: the first comes after the start-up."""

    def __init__(self):
        self.times = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.times.append(time.perf_counter())

    def settled(self):
        pairs = zip(self.times, self.times[1:])
        return statistics.median(LOGGING_STEPS * ROWS_A_STEP / (end - begin) for begin, end in pairs)


def main(config_file, tokenizer_folder, squad, num_rows, padding):
    rows = rows_of(squad, AutoTokenizer.from_pretrained(tokenizer_folder), int(num_rows))
    torch.manual_seed(0)
    model = BloomForCausalLM(BloomConfig.from_json_file(config_file)).cuda()
    torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, num_train_epochs=1, per_device_train_batch_size=4,
                                      gradient_accumulation_steps=4, learning_rate=5e-5, logging_steps=LOGGING_STEPS,
                                      save_strategy="no", report_to=[], disable_tqdm=True, bf16=True)
        clock = Clock()
        trainer = Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator(padding),
                          callbacks=[clock])
        metrics = trainer.train().metrics
    print(json.dumps({"samples_per_second": clock.settled(), "loss": metrics["train_loss"],
                      "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
                      "transformers": transformers.__version__, "torch": torch.__version__}))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
