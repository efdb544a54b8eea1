"""Checks decoder folders that Tessera wrote by loading them with transformers.

Run: $(tools/references/venv.sh decoders) tools/references/check_decoder_folders.py REFERENCE.safetensors FOLDER [...]
REFERENCE is a file of decoders.py, FOLDER holds the same model in float32. Compared with what save_pretrained wrote: names
and shapes of the tensors, keys and values of config.json (but for the release that wrote it), the ids in
generation_config.json, and the logits of the reference's rows, each alone. Prints OK or what differs, exits with 1 then.
"""

import json
import logging
import pathlib
import sys
import warnings

import torch
import transformers
from safetensors import safe_open
from transformers import AutoModelForCausalLM

LARGEST_DIFFERENCE = 1e-5
OF_THE_WRITER = {"transformers_version"}
# Phi-3's own files cause it: their longrope has no "factor".
EXPECTED_WARNING = "set a `rope_parameters['original_max_position_embeddings']` field"


class Recorder(logging.Handler):
    """Records everything that transformers warns of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def read_reference(path):
    with safe_open(path, "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata()


def shapes_in(folder):
    shapes = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            shapes.update({key: tuple(file.get_slice(key).get_shape()) for key in file.keys()})
    return shapes


def differences(what, found, expected):
    lines = [f"{what} {key} is missing" for key in sorted(expected.keys() - found.keys())]
    lines += [f"{what} {key} is one too many" for key in sorted(found.keys() - expected.keys())]
    return lines + [f"{what} {key}: {json.dumps(found[key])} instead of {json.dumps(expected[key])}"
                    for key in sorted(found.keys() & expected.keys()) if found[key] != expected[key]]


def settings_of(text):
    return {key: value for key, value in json.loads(text).items() if key not in OF_THE_WRITER}


def check_settings(folder, metadata):
    lines = differences("config.json:", settings_of((folder / "config.json").read_text()), settings_of(metadata["config"]))
    path = folder / "generation_config.json"
    if path.exists():
        found, expected = (
            {key: value for key, value in settings_of(text).items() if key.endswith("_token_id")}
            for text in (path.read_text(), metadata["generation_config"]))
        lines += differences("generation_config.json:", found, expected)
    return lines


def load(folder):
    recorder = Recorder()
    logging.getLogger("transformers").addHandler(recorder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, info = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
    logging.getLogger("transformers").removeHandler(recorder)
    lines = [f"transformers says: {line}" for line in recorder.lines if EXPECTED_WARNING not in line]
    lines += [f"transformers says: {each.message}" for each in caught if "transformers" in each.filename]
    return model.eval(), lines + [f"{key}: {value}" for key, value in info.items() if value]


def check_logits(model, tensors):
    rows = [ids[: mask.sum()] for ids, mask in zip(tensors["ids_right"], tensors["mask_right"])]
    expected, found = tensors["logits_right"], []
    with torch.no_grad():
        for row in rows:
            for module in model.modules():
                if "dynamic" in getattr(module, "rope_type", ""):  # begins anew with each row, as in decoders.py
                    module.max_seq_len_cached = module.original_max_seq_len
                    module.register_buffer("inv_freq", module.original_inv_freq.clone(), persistent=False)
            found.append(model(input_ids=row[None], use_cache=False).logits[0].float())
    difference = (torch.cat(found) - expected).abs().max().item()
    return [] if difference <= LARGEST_DIFFERENCE else [f"the logits differ by up to {difference:.3g}"]


def check(reference, folder):
    tensors, metadata = read_reference(reference)
    expected = {key[2:]: tuple(tensor.shape) for key, tensor in tensors.items() if key.startswith("w.")}
    model, lines = load(folder)
    lines += differences("tensor", shapes_in(folder), expected)
    lines += check_settings(folder, metadata)
    return lines + check_logits(model, tensors)


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    arguments = [pathlib.Path(each) for each in sys.argv[1:]]
    if not arguments or len(arguments) % 2:
        sys.exit(__doc__)
    mistakes = 0
    for reference, folder in zip(arguments[::2], arguments[1::2]):
        lines = check(reference, folder)
        mistakes += len(lines)
        print(f"{folder}: OK" if not lines else "\n".join(f"{folder}: {line}" for line in lines))
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
