"""tests/data/model_folder/: tiny model folders and weight files as transformers, safetensors and torch write them.

Run: $(tools/references/venv.sh) tools/references/model_folder.py
`expected.json` lists every tensor of each file: type, shape, and its sum and first elements in double.
"""

import collections
import json
import pathlib
import shutil

import safetensors.torch
import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/model_folder"


def facts(tensors):
    def one(tensor):
        flat = tensor.detach().to(torch.float64).reshape(-1)
        return {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "sum": float(flat.sum()),
            "first": [float(value) for value in flat[:4]],
        }

    return {name: one(tensor) for name, tensor in tensors.items()}


def tiny_bloom(dtype=torch.float32):
    torch.manual_seed(7)
    config = transformers.BloomConfig(vocab_size=96, hidden_size=16, n_layer=3, n_head=4)
    model = transformers.BloomForCausalLM(config)
    for parameter in model.parameters():  # biases too, so that none of them is all zeros
        torch.nn.init.normal_(parameter, std=0.5)
    return model.to(dtype)


def save(name, model, **options):
    model.save_pretrained(OUT / name, **options)
    return facts(model.state_dict())


def pickles(expected):
    """Files written by torch.save: what a state dict may contain, and what must be refused."""
    torch.manual_seed(11)
    base = torch.randn(6, 5)
    odd = collections.OrderedDict(
        transposed=base.t(),
        window=base[1:4, 2:],
        tied=base,
        scalar=torch.tensor(2.5, dtype=torch.float64),
        empty=torch.empty(0, 3),
        parameter=torch.nn.Parameter(torch.randn(3)),
        flags=torch.tensor([True, False, True]),
        **{str(dtype).removeprefix("torch."): torch.arange(-3, 9).to(dtype).reshape(3, 4)
           for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                         torch.bfloat16, torch.float64)},
    )
    torch.save(odd, OUT / "odd.pth")
    expected["odd.pth"] = facts(odd)

    batch_norm = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3, bias=False), torch.nn.BatchNorm2d(3))
    batch_norm(torch.randn(2, 2, 5, 5))
    torch.save(batch_norm.state_dict(), OUT / "batch_norm.pth")
    expected["batch_norm.pth"] = facts(batch_norm.state_dict())

    # The format from before torch 1.6, still used by many older published weights.
    torch.save(odd, OUT / "odd_legacy.pth", _use_new_zipfile_serialization=False)
    expected["odd_legacy.pth"] = facts(odd)

    torch.save(torch.nn.Linear(2, 2), OUT / "refused_module.pth")
    torch.save({"model": {"weight": base}, "epoch": 3}, OUT / "refused_checkpoint.pth")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), OUT / "refused_script.pth")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    expected = {
        "bloom_safetensors": save("bloom_safetensors", tiny_bloom()),
        "bloom_sharded": save("bloom_sharded", tiny_bloom(torch.bfloat16), max_shard_size="12KB"),
        "bloom_bin": save("bloom_bin", tiny_bloom(torch.float16), safe_serialization=False),
        "bloom_bin_sharded": save("bloom_bin_sharded", tiny_bloom(), safe_serialization=False, max_shard_size="24KB"),
        # Without the head, so without the prefix, like the published bloom-560m.
        "bloom_base": save("bloom_base", tiny_bloom().transformer),
    }
    pickles(expected)
    every = {
        str(dtype).removeprefix("torch."): torch.arange(6).to(torch.float32).to(dtype).reshape(2, 3)
        for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32,
                      torch.int64, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float16,
                      torch.bfloat16, torch.float32, torch.float64)
    }
    safetensors.torch.save_file(every, OUT / "every_type.safetensors", metadata={"made": "for a test"})
    expected["every_type.safetensors"] = facts(every)
    (OUT / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
