"""What TRL's SFTTrainer and transformers' run_clm make of rows: tokens, masks, blocks, and the losses of 20 steps.

    $(tools/references/venv.sh trl) tools/references/row_jobs.py

Writes tests/data/row_jobs/: small models like Llama and Qwen 3 with random weights, a tokenizer and a chat template each;
rows made of the sentences of sentences.py; tokens.json, losses.json. Everything runs in float32 on a CPU. Rows come in
the order that seed 42 gives them, and losses are taken before they are rounded.

run_clm is a script, not a part of the package: blocks_of() does what its tokenize_function and group_texts do.
"""

import contextlib
import gzip
import json
import os
import pathlib
import tempfile
import zlib

os.environ["OMP_NUM_THREADS"] = "1"
import datasets
import numpy
import tokenizers
import torch
import transformers
import trl
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Trainer
from transformers import TrainingArguments, default_data_collator, set_seed

from sentences import SENTENCES
from tokenizer_variants import LLAMA3

OUT = pathlib.Path(__file__).parents[2] / "tests/data/row_jobs"
NUM_ROWS, NUM_STEPS, MAX_LENGTH, BLOCK_SIZE = 24, 20, 120, 32
NUM_DOCUMENTS = 2300  # in groups of 1000: two whole ones and a part

TRAINING = {"learning_rate": 2e-3, "lr_scheduler_type": "linear", "warmup_steps": 0, "weight_decay": 0.0,
            "max_grad_norm": 1.0, "optim": "adamw_torch", "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 2, "max_steps": NUM_STEPS}
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 256, "initializer_range": 0.2}

# Its begin token comes from the template, which the tokenizer would add to any other text.
LLAMA_TEMPLATE = """{{ bos_token }}{% for message in messages %}{% if message.role == 'assistant' %}\
{% generation %}{{ message.content | trim }}{{ eos_token }}{% endgeneration %}\
{% else %}[{{ message.role }}] {{ message.content }} [/{{ message.role }}] {% endif %}{% endfor %}\
{% if add_generation_prompt %}{% endif %}"""
QWEN_TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}
{% else %}{{ message.content }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def llama_tokenizer():
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    special = ["<unk>", "<s>", "</s>"]
    pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    # Latin letters alone; others are bytes. (Which letters a limit of the alphabet keeps is left to chance.)
    tokenizer.train_from_iterator(SENTENCES[:9], trainers.BpeTrainer(
        vocab_size=420, special_tokens=special + pieces, show_progress=False))
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] in special]
    content["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                   chat_template=LLAMA_TEMPLATE)


def qwen_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>",
                                   chat_template=QWEN_TEMPLATE)


def make_folder(family, tokenizer, **settings):
    tokenizer.save_pretrained(OUT / family)
    torch.manual_seed(zlib.crc32(family.encode()))
    pad = tokenizer.pad_token_id if tokenizer.pad_token else None
    config = AutoConfig.for_model(family, **SIZES, vocab_size=len(tokenizer), bos_token_id=tokenizer.bos_token_id,
                                  eos_token_id=tokenizer.eos_token_id, pad_token_id=pad, **settings)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(OUT / family)


def text(i, most=40):
    # Mostly Latin letters: others are several tokens each in so small vocabularies.
    sentences = SENTENCES[:9] + SENTENCES[9::7]
    return sentences[i % len(sentences)][:most].strip()


def turn(role, content):
    return {"role": role, "content": content}


def chat(i):
    turns = [turn("system", text(7 * i, 20))] if i % 4 == 1 else []
    for k in range(1 + i % 3):
        turns += [turn("user", text(3 * i + k, 15)), turn("assistant", text(5 * i + k, 20) + ("\n" if i % 5 == 2 else ""))]
    return turns


def make_rows():
    """Some are longer than MAX_LENGTH. Of the last of each kind, nothing that counts is left."""
    pairs = [{"prompt": text(i), "completion": " " * (i % 3 != 0) + (text(i + 9) + text(i + 10))[:10 + 3 * i]} for i in range(NUM_ROWS)]
    # Prompt and completion share a token: "th" + "e".
    pairs[4] = {"prompt": "The weather is fine, and th", "completion": "e child reads."}
    pairs.append({"prompt": "".join(text(i) for i in range(9)), "completion": " No room."})
    chats = [{"messages": chat(i)} for i in range(NUM_ROWS)]
    chats.append({"messages": [turn("user", pairs[-1]["prompt"]), turn("assistant", "No room.")]})
    chat_pairs = [{"prompt": row["messages"][:-1], "completion": row["messages"][-1:]} for row in chats]
    texts = [{"text": text(i) + (" " + text(i + 1)) * (i % 2)} for i in range(NUM_ROWS)]
    for name, rows in {"pairs": pairs, "chats": chats, "chat_pairs": chat_pairs, "texts": texts}.items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (OUT / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    documents = [json.dumps({"text": document(i)}, ensure_ascii=False) + "\n" for i in range(NUM_DOCUMENTS)]
    (OUT / "documents.jsonl.gz").write_bytes(gzip.compress("".join(documents).encode(), mtime=0))


MODES = {"completion": {"completion_only_loss": True}, "full": {"completion_only_loss": False},
         "assistant": {"completion_only_loss": False, "assistant_only_loss": True},
         "assistant_completion": {"completion_only_loss": True, "assistant_only_loss": True}}
KINDS = [("pairs", "completion"), ("pairs", "full"), ("chats", "full"), ("chats", "assistant"),
         ("chat_pairs", "completion"), ("chat_pairs", "full"), ("chat_pairs", "assistant"),
         ("chat_pairs", "assistant_completion"), ("texts", "full")]


class Measured:
    """Keeps the loss of each update before the Trainer rounds it."""

    def __init__(self, *args, **how):
        self.losses, self.left = [], 0
        super().__init__(*args, **how)

    def training_step(self, *args, **how):
        loss = super().training_step(*args, **how)
        if self.left == 0:
            self.losses.append(0.0)
            self.left = TRAINING["gradient_accumulation_steps"]
        self.losses[-1] += loss.double().item()
        self.left -= 1
        return loss


class MeasuredSft(Measured, trl.SFTTrainer):
    pass


class MeasuredTrainer(Measured, Trainer):
    pass


def arguments_of(kind, folder, **how):
    return kind(folder, logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, bf16=False, disable_tqdm=True,
                **{**TRAINING, **how})


@contextlib.contextmanager
def sft_trainer(family, file, mode, num_rows=None, **how):
    rows = datasets.Dataset.from_json(str(OUT / f"{file}.jsonl"))
    rows = rows.select(range(num_rows or len(rows)))
    rows = rows.add_column("number", list(range(len(rows))))
    with tempfile.TemporaryDirectory() as folder:
        arguments = arguments_of(trl.SFTConfig, folder, gradient_checkpointing=False, **MODES[mode], **how)
        model = AutoModelForCausalLM.from_pretrained(OUT / family, dtype=torch.float32)
        yield MeasuredSft(model=model, args=arguments, train_dataset=rows,
                          processing_class=AutoTokenizer.from_pretrained(OUT / family))


def runs_of(counted):
    """[[begin, end), ...] of what counts."""
    bounds = [i for i in range(len(counted) + 1) if (i > 0 and counted[i - 1]) != (i < len(counted) and counted[i])]
    return list(zip(bounds[::2], bounds[1::2]))


def tokens_of(family):
    """Of each kind: the ids of its rows, and by mode what counts of them; with MAX_LENGTH the rows that are left."""
    result = {}
    for file, mode in KINDS:
        with sft_trainer(family, file, mode, max_length=None) as trainer:
            whole = trainer.train_dataset
        with sft_trainer(family, file, mode, max_length=MAX_LENGTH) as trainer:
            cut = trainer.train_dataset
        entry = result.setdefault(file, {"ids": list(whole["input_ids"]), "modes": {}})
        assert entry["ids"] == list(whole["input_ids"])
        for row in cut:
            expected = whole[row["number"]]
            assert all(row[key] == expected[key][:MAX_LENGTH] for key in ("input_ids", "labels"))
        counted = [runs_of([label != -100 for label in labels]) for labels in whole["labels"]]
        entry["modes"][mode] = {"counted": counted, "kept": list(cut["number"])}
    return result


def sft_losses(family, file, mode):
    with sft_trainer(family, file, mode, num_rows=NUM_ROWS, max_length=MAX_LENGTH) as trainer:
        assert list(trainer.train_dataset["number"]) == list(range(NUM_ROWS)), "a row is left out"
        trainer.train()
    return finished(trainer, {"file": file, "mode": mode})


def finished(trainer, what):
    logs = [log for log in trainer.state.log_history if "loss" in log]
    assert len(trainer.losses) == NUM_STEPS == len(logs)
    numpy.testing.assert_allclose([log["loss"] for log in logs], trainer.losses, atol=6e-5)
    return {**what, "loss": trainer.losses, "grad_norm": [log["grad_norm"] for log in logs]}


def document(i):
    return "" if i % 50 == 49 else f"{i} {text(i, 12)}"


def blocks_of(tokenizer):
    rows = datasets.Dataset.from_json(str(OUT / "documents.jsonl.gz"))
    tokens = rows.map(lambda batch: tokenizer(batch["text"]), batched=True, remove_columns=["text"])

    def group_texts(examples):
        joined = {key: sum(values, []) for key, values in examples.items()}
        num_tokens = len(joined["input_ids"]) // BLOCK_SIZE * BLOCK_SIZE
        blocks = {key: [values[i:i + BLOCK_SIZE] for i in range(0, num_tokens, BLOCK_SIZE)]
                  for key, values in joined.items()}
        return {**blocks, "labels": blocks["input_ids"].copy()}

    return tokens.map(group_texts, batched=True)


def lm(family):
    tokenizer = AutoTokenizer.from_pretrained(OUT / family)
    blocks = blocks_of(tokenizer)
    ids = numpy.array(blocks["input_ids"], dtype="<i4")
    with tempfile.TemporaryDirectory() as folder:
        set_seed(42)
        trainer = MeasuredTrainer(model=AutoModelForCausalLM.from_pretrained(OUT / family, dtype=torch.float32),
                                  args=arguments_of(TrainingArguments, folder), train_dataset=blocks,
                                  data_collator=default_data_collator)
        trainer.train()
    return finished(trainer, {"num_blocks": len(ids), "crc32_of_ids": zlib.crc32(ids.tobytes())})


def write(name, content):
    path = OUT / name
    made_by = f"tools/references/row_jobs.py, trl {trl.__version__}, transformers {transformers.__version__}, " \
              f"torch {torch.__version__.split('+')[0]}, datasets {datasets.__version__}"
    path.write_text(json.dumps({"made_by": made_by, **content}, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size} bytes")


def main():
    torch.set_num_threads(1)
    datasets.disable_progress_bars()
    OUT.mkdir(exist_ok=True)
    make_folder("llama", llama_tokenizer(), rms_norm_eps=1e-5)
    make_folder("qwen3", qwen_tokenizer(), tie_word_embeddings=True)
    make_rows()
    families = ("llama", "qwen3")
    write("tokens.json", {"max_length": MAX_LENGTH, **{family: tokens_of(family) for family in families}})
    losses = {family: {"sft": [sft_losses(family, file, mode) for file, mode in
                               (("pairs", "completion"), ("chats", "assistant"), ("pairs", "full"))],
                       "lm": lm(family)} for family in families}
    write("losses.json", {"arguments": TRAINING, "num_rows": NUM_ROWS, "max_length": MAX_LENGTH,
                          "block_size": BLOCK_SIZE, **losses})


main()
