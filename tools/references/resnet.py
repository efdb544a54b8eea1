"""What torchvision's ResNet-50 computes from weights given by a formula: tests/data/resnet/reference.json.

Run: $(tools/references/venv.sh) tools/references/resnet.py
Weights are not stored: resnet_test.cc computes the same ones.
"""
import hashlib
import json
import math
import pathlib

import torch
import torchvision

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "resnet"
LABELS = [3, 1, 4, 1]
MASK = 0xFFFFFFFF


def noise(count, salt):
    """Numbers in [-0.5, 0.5) that are exact in float64 and the same everywhere: integers, hashed."""
    h = (torch.arange(count) * 1597334677 + (salt + 1) * 40503) & MASK
    h = ((h ^ (h >> 15)) * 1103515245) & MASK
    h = ((h ^ (h >> 13)) * 1597334677) & MASK
    return (h ^ (h >> 16)).double() / 2**32 - 0.5


def fill(model):
    for salt, (name, tensor) in enumerate(model.state_dict().items()):
        u = noise(tensor.numel(), salt).view(tensor.shape)
        if name.endswith("num_batches_tracked"):
            continue
        if tensor.dim() == 4:
            value = u * math.sqrt(24.0 / (tensor.shape[0] * tensor.shape[2] * tensor.shape[3]))
        elif name.startswith("fc."):
            value = u * 0.1
        elif name.endswith("bn3.weight"):
            value = 0.2 + 0.1 * u  # weak branches, so that rounding errors do not grow from block to block
        elif name.endswith("running_var") or name.endswith("weight"):
            value = 1 + 0.5 * u
        else:
            value = 0.2 * u
        tensor.copy_(value)


def summary(tensor):
    flat = tensor.detach().flatten().double()
    places = [k * (flat.numel() - 1) // 3 for k in range(4)]
    return {"norm": flat.norm().item(), "samples": [flat[place].item() for place in places]}


def passes(dtype):
    model = torchvision.models.resnet50(num_classes=10).to(dtype)
    with torch.no_grad():
        fill(model)
    images = (4 * noise(4 * 3 * 64 * 64, 1000)).view(4, 3, 64, 64).to(dtype)
    model.eval()
    with torch.no_grad():
        eval_logits = model(images)
    model.train()
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS))
    loss.backward()
    return {
        "eval_logits": eval_logits.tolist(),
        "train_logits": logits.tolist(),
        "loss": loss.item(),
        "gradients": {name: summary(p.grad) for name, p in model.named_parameters()},
        "buffers": {name: summary(b) for name, b in model.named_buffers()},
    }


def initialised():
    torch.manual_seed(0)
    model = torchvision.models.resnet50(num_classes=200)
    return {name: {**summary(p), "sha256": hashlib.sha256(p.detach().numpy().tobytes()).hexdigest()[:16]} for name, p in model.named_parameters()}


def main():
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    state = torchvision.models.resnet50().state_dict()
    reference = {
        "made_with": {"torch": torch.__version__, "torchvision": torchvision.__version__},
        "state_dict": [[name, list(tensor.shape)] for name, tensor in state.items()],
        "labels": LABELS,
        "float64": passes(torch.float64),
        "float32": passes(torch.float32),
        "seed_0": initialised(),
    }
    text = json.dumps(reference)
    (OUT / "reference.json").write_text(text.replace('"float64"', '\n"float64"').replace('"float32"', '\n"float32"').replace('"seed_0"', '\n"seed_0"') + "\n")


main()
