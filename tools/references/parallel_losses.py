"""Losses of PyTorch's own data parallelism: tests/data/parallel/*.safetensors.

Two ranks (processes, gloo, CPU) train small models with DistributedDataParallel and with FSDP2 (fully_shard), from the
same weights and on the same data, for 20 updates in float32. Each file holds one model: weights and buffers ("w.*"), data,
and for every case ("ddp.plain.losses", "fsdp2.accumulated.norms") the loss of each update and the norm of its gradient
before clipping. The loss of an update is the mean over all that counts on all ranks and in all micro-steps. Both wrappers
divide gradients by the number of ranks, so each rank's sum is multiplied by that number and divided by the global count.

    $(tools/references/venv.sh) tools/references/parallel_losses.py
"""

import contextlib
import json
import os
import pathlib
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from transformers import BloomConfig, BloomForCausalLM

from models import NORM_WEIGHTS, draw

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "parallel"
NUM_RANKS, NUM_STEPS, NUM_MICRO_STEPS = 2, 20, 4
IGNORED = -100
# name: micro-steps per update, the norm that gradients are clipped to (0: no clipping)
CASES = {"plain": (1, 0.0), "clipped": (1, 0.5), "accumulated": (NUM_MICRO_STEPS, 0.0)}


class Text:
    """Sequences of many lengths, padded on the right; a third of the labels do not count."""

    NUM_ROWS, WIDTH = 3, 9

    def __init__(self, vocab_size, seed):
        generator = torch.Generator().manual_seed(seed)
        shape = (NUM_STEPS, NUM_MICRO_STEPS, NUM_RANKS, self.NUM_ROWS)
        lengths = torch.randint(2, self.WIDTH + 1, shape, generator=generator)
        self.mask = (torch.arange(self.WIDTH) < lengths[..., None]).long()
        # A vocabulary of few words: something to learn in 20 steps.
        words = torch.randint(3, vocab_size, (12,), generator=generator)
        self.ids = words[torch.randint(0, 12, (*shape, self.WIDTH), generator=generator)] * self.mask
        counts = (torch.rand((*shape, self.WIDTH), generator=generator) > 0.3) & self.mask.bool()
        counts[..., 0, 0:2] = True  # every rank has some
        self.labels = torch.where(counts, self.ids, IGNORED)
        self.tokens = torch.where(counts, self.ids, -self.ids)

    def tensors(self):
        """[step, micro-step, rank, row, position]: ids, negative if the label does not count, 0 after the end."""
        return {"tokens": self.tokens}

    def loss(self, model, step, micro_step, rank):
        place = (step, micro_step, rank)
        logits = model(self.ids[place], self.mask[place])
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), self.labels[place][:, 1:].flatten(), reduction="sum",
                               ignore_index=IGNORED)

    def num_counted(self, step, num_micro_steps):
        return int((self.labels[step, :num_micro_steps, :, :, 1:] != IGNORED).sum())


class Images:
    NUM_IMAGES, SIZE = 4, 10

    def __init__(self, num_classes, seed):
        generator = torch.Generator().manual_seed(seed)
        shape = (NUM_STEPS, NUM_MICRO_STEPS, NUM_RANKS, self.NUM_IMAGES)
        self.classes = torch.randint(0, num_classes, shape, generator=generator)
        # One pattern per class plus noise, in quarters.
        self.patterns = torch.randint(-4, 5, (num_classes, 3, self.SIZE, self.SIZE), generator=generator)
        self.noise = torch.randint(-4, 5, (*shape, 3, self.SIZE, self.SIZE), generator=generator)

    def tensors(self):
        return {"classes": self.classes, "patterns": self.patterns, "noise": packed(self.noise + 4)}

    def loss(self, model, step, micro_step, rank):
        place = (step, micro_step, rank)
        images = (self.patterns[self.classes[place]] + self.noise[place]).float() / 4
        return F.cross_entropy(model(images), self.classes[place], reduction="sum")

    def num_counted(self, step, num_micro_steps):
        return num_micro_steps * NUM_RANKS * self.NUM_IMAGES


def packed(values):
    """Numbers from 0 to 15, fifteen in each int64, the first in the lowest four bits."""
    return (values.flatten().view(-1, 15) << (4 * torch.arange(15))).sum(-1)


class Bloom(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = BloomConfig(vocab_size=96, hidden_size=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2,
                                  pad_token_id=0)
        self.config._attn_implementation = "eager"
        self.model = BloomForCausalLM(self.config)

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).logits

    def blocks(self):
        return list(self.model.transformer.h)

    def names(self):
        return {key.removeprefix("model."): value for key, value in self.named_parameters()}

    def settings(self):
        return self.config.to_dict()


class Gpt(nn.Module):
    VOCAB_SIZE, WIDTH, LAYERS, HEADS, INNER = 90, 32, 2, 4, 64

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.VOCAB_SIZE, self.WIDTH)
        layer = nn.TransformerEncoderLayer(self.WIDTH, self.HEADS, self.INNER, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, self.LAYERS, enable_nested_tensor=False)
        self.bias = nn.Parameter(torch.empty(self.VOCAB_SIZE))

    def forward(self, ids, mask):
        causal = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        padding = torch.where(mask.bool(), 0.0, float("-inf"))
        x = self.body(self.embedding(ids), mask=causal, src_key_padding_mask=padding)
        return F.linear(x, self.embedding.weight, self.bias)

    def blocks(self):
        return list(self.body.layers)

    def names(self):
        own = {key.removeprefix("body."): value for key, value in self.named_parameters()}
        own["head.bias"] = own.pop("bias")
        return own

    def settings(self):
        return {"model_type": "tessera-gpt", "vocab_size": self.VOCAB_SIZE, "hidden_size": self.WIDTH,
                "num_layers": self.LAYERS, "num_heads": self.HEADS, "ff_dim": self.INNER, "positions": "none",
                "dropout": 0.0}


class ConvolutionBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        inner = F.silu(self.bn1(self.conv1(x)))
        return F.silu(x + self.bn2(self.conv2(inner)))


class SmallResNet(nn.Module):
    """tests/parallel/small_resnet.h in Python."""

    CHANNELS, BLOCKS, CLASSES = 12, 3, 7

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, self.CHANNELS, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(self.CHANNELS)
        self.layer = nn.ModuleList([ConvolutionBlock(self.CHANNELS) for _ in range(self.BLOCKS)])
        self.fc = nn.Linear(self.CHANNELS, self.CLASSES)

    def forward(self, images):
        x = F.silu(self.bn1(self.conv1(images)))
        for block in self.layer:
            x = block(x)
        return self.fc(x.mean((2, 3)))

    def blocks(self):
        return list(self.layer)

    def names(self):
        return dict(self.named_parameters())

    def settings(self):
        return {}


def adamw(model):
    """Hugging Face's groups: no decay for biases and norms."""
    def decays(name):
        return not name.endswith("bias") and not name.endswith(NORM_WEIGHTS)

    named = dict(model.named_parameters())
    groups = [{"params": [p for name, p in named.items() if decays(name)], "weight_decay": 0.01},
              {"params": [p for name, p in named.items() if not decays(name)], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=2e-3)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-4)


# name: the model, its data, its optimizer; the seed of `draw`
MODELS = {
    "bloom": (Bloom, lambda: Text(96, 21), adamw, 20),
    "gpt": (Gpt, lambda: Text(90, 31), adamw, 30),
    "resnet": (SmallResNet, lambda: Images(SmallResNet.CLASSES, 41), sgd, 40),
}


def drawn(make, seed):
    model = make()
    draw(model, seed)
    for name, parameter in model.named_parameters():  # norms are about one
        if ".bn" in "." + name and name.endswith("weight"):
            parameter.data += 1
    return model


class Ddp:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)

    def micro_step(self, is_last):
        return contextlib.nullcontext() if is_last else self.model.no_sync()

    def clip(self, limit):
        return nn.utils.clip_grad_norm_(self.model.parameters(), limit)


class Fsdp2:
    """Reduces in every micro-step, which is FSDP2's default."""

    def __init__(self, model):
        for block in model.blocks():
            fully_shard(block)
        self.model = fully_shard(model)
        assert all(isinstance(parameter, DTensor) for parameter in self.model.parameters())

    def micro_step(self, is_last):
        return contextlib.nullcontext()

    def clip(self, limit):
        return nn.utils.clip_grad_norm_(self.model.parameters(), limit).full_tensor()


def train(rank, name, wrapper, case):
    make, data_of, optimizer_of, seed = MODELS[name]
    num_micro_steps, limit = CASES[case]
    data, model = data_of(), drawn(make, seed)
    wrapped = wrapper(model)
    optimizer = optimizer_of(model)
    losses, norms = [], []
    for step in range(NUM_STEPS):
        count = data.num_counted(step, num_micro_steps)
        total = torch.zeros((), dtype=torch.float64)
        for micro_step in range(num_micro_steps):
            with wrapped.micro_step(micro_step + 1 == num_micro_steps):
                loss = data.loss(wrapped.model, step, micro_step, rank)
                (loss * (NUM_RANKS / count)).backward()
            total += loss.detach()
        dist.all_reduce(total)
        norms.append(wrapped.clip(limit if limit > 0 else float("inf")).double())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total / count)
    results = {"losses": torch.stack(losses), "norms": torch.stack(norms)}
    if wrapper is Ddp:  # which broadcasts rank 0's statistics before each forward pass
        results.update({"buffer." + key: value.clone() for key, value in model.named_buffers()})
    return results


def run_rank(rank, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=NUM_RANKS)
    for name, (make, data_of, _, seed) in MODELS.items():
        model = drawn(make, seed)
        out = {"w." + key: value for key, value in model.names().items()}
        out.update(data_of().tensors())
        for wrapper in (Ddp, Fsdp2):
            for case in CASES:
                for key, value in train(rank, name, wrapper, case).items():
                    out[f"{wrapper.__name__.lower()}.{case}.{key}"] = value
                if rank == 0:
                    losses = out[f"{wrapper.__name__.lower()}.{case}.losses"]
                    print(f"{name} {wrapper.__name__} {case}: {losses[0]:.4f} to {losses[-1]:.4f}", flush=True)
        if rank == 0:
            write(name, out, model.settings())
    dist.destroy_process_group()


def write(name, tensors, config):
    path = FOLDER / f"{name}.safetensors"
    tensors = {key: value.detach().clone().contiguous() for key, value in tensors.items()}
    metadata = {"config": json.dumps(config), "made_with": f"torch {torch.__version__}"}
    save_file(tensors, path, metadata=metadata)
    print(f"{path.relative_to(FOLDER.parents[2])}: {path.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free_port = probe.getsockname()[1]
    multiprocessing.spawn(run_rank, (free_port,), NUM_RANKS)
