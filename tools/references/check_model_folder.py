"""Checks what `tessera convert` writes by reading it back with transformers, safetensors and torch.load.

Run: $(tools/references/venv.sh) tools/references/check_model_folder.py build/release/bin/tessera
Converts every folder of tests/data/model_folder to both formats, whole and sharded, in its own and in each other type,
and loads it with transformers: no warning, no missing or unexpected tensor, every value as in the source. Exits with 1
otherwise.
"""

import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import safetensors.torch
import torch
import transformers

transformers.utils.logging.disable_progress_bar()

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data/model_folder"
TYPES = {"keep": None, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
mistakes = []


class Recorder(logging.Handler):
    """Records everything that transformers logs."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def check(condition, what):
    if not condition:
        mistakes.append(what)
        print("WRONG:", what)


def load(folder, model_class):
    recorder = Recorder()
    logger = logging.getLogger("transformers")
    logger.addHandler(recorder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, info = model_class.from_pretrained(folder, output_loading_info=True, torch_dtype="auto")
        transformers.GenerationConfig.from_pretrained(folder) if model_class is not transformers.BloomModel else None
    logger.removeHandler(recorder)
    said = recorder.lines + [str(each.message) for each in caught if "torch_dtype" not in str(each.message)]
    said = [line for line in said if "`torch_dtype` is deprecated" not in line]  # caused by this script's own call
    return model.state_dict(), {key: value for key, value in info.items() if value}, said


def same(written, source, dtype):
    if written.keys() != source.keys():
        return f"names differ: {sorted(written.keys() ^ source.keys())[:4]}"
    for name, tensor in source.items():
        expected = tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor
        if written[name].dtype != expected.dtype or not torch.equal(written[name], expected):
            return f"{name} differs"
    return ""


def check_folders(tessera, out):
    for source in sorted(path for path in DATA.iterdir() if path.is_dir()):
        model_class = transformers.BloomModel if source.name == "bloom_base" else transformers.BloomForCausalLM
        original, _, _ = load(source, model_class)
        for file_format in ("safetensors", "bin"):
            for size in ("5G", "9K"):
                for name, dtype in TYPES.items():
                    target = out / f"{source.name}-{file_format}-{size}-{name}"
                    subprocess.run([tessera, "convert", source, target, "--format", file_format, "--max_shard_size", size,
                                    "--dtype", name], check=True, stdout=subprocess.DEVNULL)
                    written, info, said = load(target, model_class)
                    check(not said, f"{target.name}: transformers says {said}")
                    check(not info, f"{target.name}: {info}")
                    check(not same(written, original, dtype), f"{target.name}: {same(written, original, dtype)}")


def check_files(tessera, out):
    for source in ("odd.pth", "odd_legacy.pth", "batch_norm.pth"):
        original = torch.load(DATA / source, weights_only=True)
        for target in (out / f"{source}.bin", out / f"{source}.safetensors"):
            subprocess.run([tessera, "convert", DATA / source, target], check=True, stdout=subprocess.DEVNULL)
            if target.suffix == ".bin":
                written = torch.load(target, weights_only=True)
                mapped = torch.load(target, weights_only=True, mmap=True)
                check(not same(mapped, original, None), f"{target.name}, mapped: {same(mapped, original, None)}")
            else:
                written = safetensors.torch.load_file(target)
            check(not same(written, original, None), f"{target.name}: {same(written, original, None)}")


def check_inspect(tessera):
    for folder in ("bloom_safetensors", "bloom_bin", "bloom_sharded"):
        shown = json.loads(subprocess.run([tessera, "inspect", DATA / folder, "--json"], check=True, capture_output=True).stdout)
        model = transformers.BloomForCausalLM.from_pretrained(DATA / folder)
        check(shown["parameters"] == model.num_parameters(), f"inspect {folder}: {shown['parameters']} parameters")


def main():
    tessera = sys.argv[1]
    with tempfile.TemporaryDirectory() as out:
        check_folders(tessera, pathlib.Path(out))
        check_files(tessera, pathlib.Path(out))
        check_inspect(tessera)
    print(f"{len(mistakes)} mistakes with transformers {transformers.__version__}, torch {torch.__version__}")
    sys.exit(1 if mistakes else 0)


main()
