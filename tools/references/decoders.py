"""References for today's decoder families: tests/data/models/{llama,mistral,qwen2,qwen3,gemma3,phi3,olmo2,olmo3,smollm3,gpt2}*.

Each file is one case of decoder_cases.py in the format of models.py, with more in it:
    greedy_free         32 greedy tokens of each row, by the original's own `generate`
    losses, grad_norms  20 steps of the original's Trainer, one row a step (train_rows), before rounding
    metadata            "config" and "generation_config" as save_pretrained writes them, "config_v4" as transformers 4 did
The original takes the rope frequencies of the types "dynamic" and "longrope" by the longest row of a batch, Tessera by each
row. So every row is computed alone, without padding.

    $(tools/references/venv.sh decoders) tools/references/decoders.py [CASE...]
"""

import copy
import json
import os
import pathlib
import sys
import tempfile
import zlib

os.environ["OMP_NUM_THREADS"] = "1"
import torch
import transformers
from safetensors.torch import load_file
from torch.utils.data import SequentialSampler
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments

from decoder_cases import CASES, old_form
from models import draw, flat_targets, labels_of, padded, sequences, with_bf16_errors, with_losses, write

NUM_NEW_TOKENS, NUM_STEPS = 32, 20
TRAINING = {"learning_rate": 1e-3, "optim": "adamw_torch", "lr_scheduler_type": "linear", "warmup_steps": 0,
            "weight_decay": 0.01, "max_grad_norm": 1.0, "per_device_train_batch_size": 1, "max_steps": NUM_STEPS}


def start_from_short_rows(module, arguments):
    """The type "dynamic" keeps the frequencies of the longest row so far: forget them before each row."""
    if "dynamic" in module.rope_type:
        module.max_seq_len_cached = module.original_max_seq_len
        module.register_buffer("inv_freq", module.original_inv_freq.clone(), persistent=False)


def model_of(case, **changes):
    config = AutoConfig.for_model(case.family, **copy.deepcopy({**case.settings, **changes}))
    return prepared(AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32))


def loaded(folder, dtype=torch.float32):
    return prepared(AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=dtype))


def prepared(model):
    for name, module in model.named_modules():
        if name.endswith("rotary_emb"):
            module.register_forward_pre_hook(start_from_short_rows)
    return model.eval()


def logits_of(model, rows):
    """[all positions, vocab]: each row computed alone."""
    return torch.cat([model(input_ids=row[None], use_cache=False).logits[0] for row in rows])


def check_variants(name, case, model, rows, expected):
    """What the case is named for must show in its logits."""
    for changes in case.without:
        other = model_of(case, **changes)
        other.load_state_dict(model.state_dict())
        difference = (logits_of(other, rows) - expected).abs().max().item()
        assert difference > 1e-3, f"{name}: {changes} makes a difference of {difference} only"


def check_old_form(name, folder, rows, expected, config):
    with tempfile.TemporaryDirectory() as old:
        (pathlib.Path(old) / "config.json").write_text(json.dumps(config))
        (pathlib.Path(old) / "model.safetensors").symlink_to(pathlib.Path(folder) / "model.safetensors")
        difference = (logits_of(loaded(old), rows) - expected).abs().max().item()
    assert difference == 0, f"{name}: with the config of version 4 the logits differ by {difference}"


def check_own_loss(model, rows, labels, out):
    own = sum(model(input_ids=row[None], labels=label[None], num_items_in_batch=1).loss for row, label in zip(rows, labels))
    torch.testing.assert_close(own.detach().reshape(1), out["loss_sum"])


def greedy(model, rows, use_cache):
    """32 tokens of each row, and the smallest lead of the first choice over the second."""
    model.generation_config.eos_token_id = None
    tokens, lead = [], float("inf")
    for row in rows:
        result = model.generate(row[None], attention_mask=torch.ones_like(row[None]), max_new_tokens=NUM_NEW_TOKENS,
                                do_sample=False, use_cache=use_cache, return_dict_in_generate=True, output_logits=True)
        tokens.append(result.sequences[0, len(row):])
        best = torch.cat(result.logits).float().topk(2).values
        lead = min(lead, (best[:, 0] - best[:, 1]).min().item())
    return torch.stack(tokens), lead


def with_greedy_tokens(name, case, out, model, rows):
    """False if these weights make continuations that would be a poor test."""
    cached, lead = greedy(model, rows, True)
    plain, plain_lead = greedy(model, rows, False)
    out["greedy_free"] = plain
    if torch.equal(cached, plain):
        lead = min(lead, plain_lead)
    else:
        # Cached keys stay rotated by the frequencies of the length at which they were made.
        assert case.settings.get("rope_parameters", {}).get("rope_type") == "dynamic", f"{name}: the cache matters"
        out["greedy_cached"] = cached
    # Rounding must not choose a token, and a model that repeats itself shows little of its positions.
    return lead > 5e-4 and len(plain.unique()) > 10


class RecordingTrainer(Trainer):
    """Takes the rows in order and keeps every loss as it is computed; the log has four digits."""

    def _get_train_sampler(self, *ignored):
        return SequentialSampler(self.train_dataset)

    def training_step(self, *arguments, **options):
        loss = super().training_step(*arguments, **options)
        self.losses.append(loss.item())
        return loss


def with_training(name, out, folder, rows):
    """A row of one token has no label, and the Trainer's loss of it is 0 / 0: such rows are left out."""
    used = [i for i, row in enumerate(rows) if len(row) > 1]
    data = [{"input_ids": rows[i], "labels": torch.cat([torch.tensor([-100]), rows[i][1:]])} for i in used]
    with tempfile.TemporaryDirectory() as target:
        arguments = TrainingArguments(target, logging_steps=1, logging_nan_inf_filter=False, save_strategy="no",
                                      report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False, **TRAINING)
        trainer = RecordingTrainer(model=loaded(folder), args=arguments, train_dataset=data)
        trainer.losses = []
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        trainer.train()
    out["losses"] = torch.tensor(trainer.losses)
    out["grad_norms"] = torch.tensor([log["grad_norm"] for log in trainer.state.log_history if "grad_norm" in log])
    out["train_rows"] = torch.tensor([used[i % len(used)] for i in range(NUM_STEPS)])
    assert len(out["losses"]) == len(out["grad_norms"]) == NUM_STEPS
    assert out["losses"][-len(used):].mean() < out["losses"][:len(used)].mean(), f"{name}: the loss does not fall"


def weights_and_rows(name, case, out):
    """The first seed whose greedy continuations are a good test."""
    model = model_of(case)
    for seed in range(zlib.crc32(name.encode()) % 10**6, 10**7, 10):
        draw(model, seed, gain=1.0, norm_mean=0.0 if case.family == "gemma3_text" else 1.0)
        rows = sequences(model.config.vocab_size, seed + 1, case.lengths)
        # A copy generates: save_pretrained would write its generation settings.
        copied = model_of(case)
        copied.load_state_dict(model.state_dict())
        with torch.no_grad():
            if with_greedy_tokens(name, case, out, copied, rows):
                return model, rows, seed


def decoder_case(name, case):
    out = {}
    model, rows, seed = weights_and_rows(name, case, out)
    labels = labels_of(rows, seed + 2)
    out.update(ids_right=padded(rows, "right", 0), labels_right=padded(labels, "right", -100),
               mask_right=padded([torch.ones_like(row) for row in rows], "right", 0))
    logits = logits_of(model, rows)
    out["logits_right"] = logits.detach()
    parameters = dict(model.named_parameters())
    with_losses(out, logits, flat_targets(labels), parameters)
    check_own_loss(model, rows, labels, out)
    with torch.no_grad():
        check_variants(name, case, model, rows, logits)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = load_file(f"{folder}/model.safetensors")
        assert saved.keys() == parameters.keys()
        out.update({"w." + key: tensor for key, tensor in saved.items()})
        texts = {key: (pathlib.Path(folder) / f"{key}.json").read_text() for key in ("config", "generation_config")}
        old = old_form(json.loads(texts["config"]))
        with torch.no_grad():
            check_old_form(name, folder, rows, logits, old)
        with_training(name, out, folder, rows)
        half = loaded(folder, torch.bfloat16)
        half_logits = logits_of(half, rows)
        with_bf16_errors(out, half_logits, flat_targets(labels), dict(half.named_parameters()))
        out["logits_bf16"] = half_logits.detach().float()
    write(name, out, texts["config"], config_v4=json.dumps(old, indent=2, sort_keys=True) + "\n",
          generation_config=texts["generation_config"], training=json.dumps(TRAINING),
          made_by=f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name, case in CASES.items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            decoder_case(name, case)
