"""tests/data/kernels/: what torch's optimizers and transformers' BLOOM activation compute from given numbers.

Run: $(tools/references/venv.sh) tools/references/kernel_cases.py
optimizers.json: for each case the settings, the initial parameters, one gradient per step, and the parameters and state
after the last step. bloom_gelu.json: inputs, outputs and gradients of transformers' BloomGelu.
"""
import json
import pathlib

import torch
import transformers
from transformers.models.bloom.modeling_bloom import BloomGelu

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "kernels"
NUMEL, STEPS = 37, 6

CASES = [
    ("adamw", {"lr": 1e-2, "weight_decay": 0.1}),
    ("adamw", {"lr": 5e-5, "weight_decay": 0.01, "betas": (0.8, 0.95), "eps": 1e-6}),
    ("adamw", {"lr": 1e-3, "weight_decay": 0.0}),
    ("adam", {"lr": 1e-2, "weight_decay": 0.1}),
    ("sgd", {"lr": 0.1}),
    ("sgd", {"lr": 0.1, "weight_decay": 0.05}),
    ("sgd", {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}),
    ("sgd", {"lr": 0.01, "momentum": 0.9, "dampening": 0.3}),
    ("sgd", {"lr": 0.01, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
]
CLASSES = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}


def optimizer_case(kind, settings, seed):
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(NUMEL, generator=generator)
    # From tiny to large, and some zeros: eps and the square root affect each differently.
    gradients = torch.randn(STEPS, NUMEL, generator=generator) * torch.logspace(-7, 2, NUMEL)
    gradients[:, ::9] = 0
    parameter = torch.nn.Parameter(start.clone())
    optimizer = CLASSES[kind]([parameter], **settings, foreach=False)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    state = {name: value.tolist() for name, value in optimizer.state[parameter].items()
             if torch.is_tensor(value) and value.numel() == NUMEL}
    return {"kind": kind, "settings": settings, "start": start.tolist(), "gradients": gradients.tolist(),
            "end": parameter.detach().tolist(), "state": state}


def bloom_gelu():
    x = torch.cat([torch.linspace(-12, 12, 97), torch.tensor([0.0, 1e-6, -1e-6, 30.0, -30.0])]).requires_grad_(True)
    y = BloomGelu().train()(x)
    y.backward(torch.linspace(-1, 1, x.numel()))
    return {"x": x.tolist(), "y": y.tolist(), "upstream": torch.linspace(-1, 1, x.numel()).tolist(),
            "gradient": x.grad.tolist()}


def write(name, value):
    (OUT / name).write_text(json.dumps(value, separators=(",", ":")).replace("},{", "},\n{") + "\n")


OUT.mkdir(parents=True, exist_ok=True)
versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
write("optimizers.json", {"versions": versions,
                          "cases": [optimizer_case(*case, seed) for seed, case in enumerate(CASES)]})
write("bloom_gelu.json", {"versions": versions, **bloom_gelu()})
