"""References for the text models: tests/data/models/*.safetensors.

Each file holds one tiny model (weights "w.*") with what the original computes from it: logits of left- and right-padded
inputs, loss, gradients ("g.*"), generated ids. The model's config is in the file's metadata, in the format of Tessera's
config reader. Weights are larger than usual initial values, so that mistakes show.

    $(tools/references/venv.sh) tools/references/models.py
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import BloomConfig, BloomForCausalLM, LogitsProcessorList, PreTrainedTokenizerFast
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "models"
LENGTHS = [9, 1, 14, 5, 11]
NORM_WEIGHTS = ("norm.weight", "norm1.weight", "norm2.weight", "ln_f.weight", "ln_1.weight", "ln_2.weight")


def draw(module, seed, gain=0.7, norm_mean=1.0):
    """Weights far from zero, norms that are not one (norm_mean 0: for norms that multiply by 1 + weight)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise * (gain / parameter.shape[-1] ** 0.5))
            else:
                parameter.copy_(noise * 0.2 + (norm_mean if name.endswith(NORM_WEIGHTS) else 0.0))


def sequences(vocab_size, seed, lengths=LENGTHS):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, vocab_size, (n,), generator=generator) for n in lengths]


def padded(rows, side, filler):
    width = max(len(row) for row in rows)
    out = torch.full((len(rows), width), filler, dtype=torch.long)
    for i, row in enumerate(rows):
        if side == "left":
            out[i, width - len(row):] = row
        else:
            out[i, : len(row)] = row
    return out


def labels_of(rows, seed):
    """The tokens themselves, some of them ignored."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.where(torch.rand(len(row), generator=generator) < 0.3, -100, row) for row in rows]


def flat_targets(labels):
    """What each packed position has to predict."""
    return torch.cat([torch.cat([label[1:], torch.tensor([-100])]) for label in labels])


def with_losses(out, logits, targets, parameters):
    """Loss sums, and the gradients of the mean loss, with and without label smoothing."""
    count = int((targets != -100).sum())
    for name, smoothing in (("", 0.0), ("_smoothed", 0.1)):
        loss = F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum", label_smoothing=smoothing)
        out["loss_sum" + name] = loss.detach().reshape(1)
        gradients = torch.autograd.grad(loss / count, list(parameters.values()), retain_graph=True)
        if smoothing == 0:
            out.update({"g." + key: gradient for key, gradient in zip(parameters, gradients)})
    out["num_counted"] = torch.tensor([count])


def with_bf16_errors(out, logits, targets, parameters):
    """Relative RMS difference between the original's own bf16 and float32 gradients of the mean loss."""
    loss = F.cross_entropy(logits.float(), targets, ignore_index=-100)
    for key, gradient in zip(parameters, torch.autograd.grad(loss, list(parameters.values()))):
        reference = out["g." + key]
        error = (gradient.float() - reference).square().mean().sqrt() / reference.square().mean().sqrt()
        out["bf16_error." + key] = error.reshape(1)


def rows_of(ids, filler=-1):
    return padded([torch.tensor(row) for row in ids], "right", filler)


def bloom_case(name, seed, **settings):
    config = BloomConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0, **settings)
    config._attn_implementation = "eager"
    model = BloomForCausalLM(config).eval()
    draw(model, seed)
    rows = sequences(config.vocab_size, seed + 1)
    labels = labels_of(rows, seed + 2)
    out = {"slopes": build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), config.n_head, torch.float32)[:, 0, 1]}
    real = {}
    for side in ("left", "right"):
        ids = padded(rows, side, 0)
        mask = padded([torch.ones_like(row) for row in rows], side, 0)
        out["ids_" + side], out["mask_" + side], out["labels_" + side] = ids, mask, padded(labels, side, -100)
        real[side] = model(input_ids=ids, attention_mask=mask).logits[mask.bool()]
        out["logits_" + side] = real[side].detach()
    parameters = {k: v for k, v in model.named_parameters()}
    with_losses(out, real["right"], flat_targets(labels), parameters)
    # The original's own loss, once, to check our reading of it.
    own = model(input_ids=out["ids_right"], attention_mask=out["mask_right"], labels=out["labels_right"]).loss
    torch.testing.assert_close(own.detach() * out["num_counted"], out["loss_sum"])
    out.update({"w." + key: value.detach().clone() for key, value in parameters.items()})
    half = model.to(torch.bfloat16)
    logits = half(input_ids=out["ids_right"], attention_mask=out["mask_right"]).logits[out["mask_right"].bool()]
    with_bf16_errors(out, logits, flat_targets(labels), dict(half.named_parameters()))
    out["logits_bf16"] = logits.detach().float()
    write(name, out, config.to_dict())


def generation_case(name, seed, **settings):
    """Greedy continuations (with and without the cache, which must agree) and sampled ones.

    The head is not tied: with random weights a tied one would repeat the last token forever.
    """
    config = BloomConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False, **settings)
    model = BloomForCausalLM(config).eval()
    draw(model, seed, gain=1.0)
    rows = sequences(config.vocab_size, seed + 1)
    out = {"ids_right": padded(rows, "right", 0), "mask_right": padded([torch.ones_like(r) for r in rows], "right", 0)}
    ids, mask = padded(rows, "left", 0), padded([torch.ones_like(row) for row in rows], "left", 0)
    common = dict(input_ids=ids, attention_mask=mask, max_new_tokens=24, pad_token_id=0)
    # An end token that occurs in some of the greedy continuations.
    free = model.generate(**common, do_sample=False, eos_token_id=None)[:, ids.shape[1]:]
    eos = int(torch.mode(free[:, 8:16].flatten()).values)
    greedy = model.generate(**common, do_sample=False, eos_token_id=eos, use_cache=True)[:, ids.shape[1]:]
    plain = model.generate(**common, do_sample=False, eos_token_id=eos, use_cache=False)[:, ids.shape[1]:]
    assert torch.equal(greedy, plain)
    ended = [row[: row.index(eos) + 1] if eos in row else row for row in greedy.tolist()]
    assert len({len(row) for row in ended}) > 2, "the continuations should end at different places"
    assert len(free.unique()) > 20, "the continuations should not repeat themselves"
    out["greedy_free"], out["greedy"], out["greedy_eos"] = free, rows_of(ended), torch.tensor([eos])
    torch.manual_seed(77)
    drawn = model.generate(**common, do_sample=True, temperature=1.3, top_k=20, top_p=0.9, eos_token_id=None)
    out["sampled"] = drawn[:, ids.shape[1]:]
    out.update({"w." + key: value for key, value in model.named_parameters()})
    write(name, out, config.to_dict())


def gpt_case(name, seed, vocab_size, hidden_size, num_layers, num_heads, ff_dim, seq_length, positions):
    torch.manual_seed(seed)
    layer = torch.nn.TransformerEncoderLayer(hidden_size, num_heads, ff_dim, dropout=0.0, batch_first=True)
    body = torch.nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
    root = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(vocab_size, hidden_size)})
    if positions == "learned":
        root["positions"] = torch.nn.Embedding(seq_length, hidden_size)
    draw(body, seed)
    draw(root, seed + 5)
    head = torch.nn.Module()
    head.bias = torch.nn.Parameter(torch.randn(vocab_size) * 0.2)
    rows = sequences(vocab_size, seed + 1)
    labels = labels_of(rows, seed + 2)
    ids = padded(rows, "right", 0)
    mask = padded([torch.ones_like(row) for row in rows], "right", 0)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1])

    def logits_of(dtype):
        x = root["embedding"](ids)
        if positions == "learned":
            x = x + root["positions"](torch.arange(ids.shape[1]))
        padding = torch.where(mask.bool(), 0.0, float("-inf")).to(dtype)
        x = body(x, mask=causal.to(dtype), src_key_padding_mask=padding)
        return F.linear(x, root["embedding"].weight, head.bias)[mask.bool()]

    logits = logits_of(torch.float32)

    def named():
        return dict([*root.named_parameters(), *body.named_parameters(), ("head.bias", head.bias)])

    out = {"ids_right": ids, "mask_right": mask, "labels_right": padded(labels, "right", -100)}
    out["logits_right"] = logits.detach()
    with_losses(out, logits, flat_targets(labels), named())
    out.update({"w." + key: value.detach().clone() for key, value in named().items()})
    for module in (root, body, head):
        module.to(torch.bfloat16)
    with_bf16_errors(out, logits_of(torch.bfloat16), flat_targets(labels), named())
    write(name, out, {
        "model_type": "tessera-gpt", "vocab_size": vocab_size, "hidden_size": hidden_size, "num_layers": num_layers,
        "num_heads": num_heads, "ff_dim": ff_dim, "seq_length": seq_length, "positions": positions, "dropout": 0.0})


def filter_cases():
    """What the generation filters keep, in the order in which `generate` applies them."""
    generator = torch.Generator().manual_seed(5)
    scores = torch.randn(4, 60, generator=generator) * 3
    scores[1, :8] = scores[1, 8]  # ties
    scores[2] = scores[2].round()
    out = {"scores": scores}
    settings = [(0.7, 5, 1.0), (1.0, 0, 0.8), (1.3, 10, 0.5), (1.0, 0, 0.05), (2.0, 100, 0.999)]
    for index, (temperature, k, p) in enumerate(settings):
        warpers = LogitsProcessorList()
        if temperature != 1.0:
            warpers.append(TemperatureLogitsWarper(temperature))
        if k:
            warpers.append(TopKLogitsWarper(top_k=k))
        if p < 1:
            warpers.append(TopPLogitsWarper(top_p=p))
        out[f"settings_{index}"] = torch.tensor([temperature, k, p], dtype=torch.float64)
        out[f"filtered_{index}"] = warpers(None, scores.clone())
    write("filters", out, {})


SENTENCES = [
    "Question: Which river flows through the old town? Context: The old town lies between two rivers, the Elbe and the "
    "Havel; only the Elbe flows through it. Answer: the Elbe",
    "Question: How many sheep were counted? Context: In the year 1612 the shepherds counted 4,250 sheep, in the year 1613 "
    "no more than 977. Answer: 4,250 and 977",
    "Grüße aus Köln, à bientôt, до встречи, またね!",
]


def folder_case():
    """A whole model folder with its tokenizer, and what transformers generates with it: what `tessera generate` prints."""
    folder = FOLDER / "folder"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>", "<s>", "</s>", "<pad>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                   pad_token="<pad>", padding_side="left")
    config = BloomConfig(vocab_size=len(fast), hidden_size=16, n_layer=1, n_head=2, tie_word_embeddings=False,
                         bos_token_id=1, eos_token_id=2, pad_token_id=3)
    model = BloomForCausalLM(config).eval()
    draw(model, 701, gain=1.0)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    cases = []
    for text in (SENTENCES[0][:60], SENTENCES[2], "x"):
        ids = fast(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = model(ids).logits[0, -1].tolist()
        greedy = model.generate(ids, max_new_tokens=12, do_sample=False)[0].tolist()
        torch.manual_seed(3)
        drawn = model.generate(ids, max_new_tokens=12, do_sample=True, temperature=0.9, top_k=40, top_p=0.95)[0].tolist()
        cases.append({"prompt": text, "prompt_ids": ids[0].tolist(), "logits": logits, "greedy": greedy,
                      "greedy_text": fast.decode(greedy, skip_special_tokens=True, clean_up_tokenization_spaces=False),
                      "drawn": drawn})
    (FOLDER / "folder_expected.json").write_text(json.dumps(cases, ensure_ascii=False, indent=1) + "\n")


def write(name, tensors, config, **texts):
    """`config` as an object or as the text of a file; `texts` are further metadata."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.safetensors"
    tensors = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
    config = config if isinstance(config, str) else json.dumps(config)
    save_file(tensors, path, metadata={"config": config, **texts})
    if texts:
        sort_metadata(path)
    print(f"{path.relative_to(FOLDER.parents[2])}: {path.stat().st_size} bytes")


def sort_metadata(path):
    """save_file writes the metadata in another order each time; a file made again should be the same file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode().ljust(size)
    assert len(text) == size
    path.write_bytes(data[:8] + text + data[8 + size:])


if __name__ == "__main__":
    torch.set_num_threads(1)
    bloom_case("bloom", 100, vocab_size=128, hidden_size=32, n_layer=3, n_head=4)
    bloom_case("bloom_6_heads", 200, vocab_size=97, hidden_size=36, n_layer=2, n_head=6)
    bloom_case("bloom_post_norm", 300, vocab_size=64, hidden_size=16, n_layer=2, n_head=2,
               apply_residual_connection_post_layernorm=True, tie_word_embeddings=False, layer_norm_epsilon=1e-3)
    generation_case("bloom_generation", 601, vocab_size=80, hidden_size=32, n_layer=2, n_head=4)
    gpt_case("gpt", 400, 110, 32, 2, 4, 64, 16, "none")
    gpt_case("gpt_learned", 500, 64, 24, 3, 3, 40, 14, "learned")
    filter_cases()
    folder_case()
