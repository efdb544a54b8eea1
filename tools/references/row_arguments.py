#!/usr/bin/env python3
"""Names and defaults of the arguments of trl's sft script and of transformers' run_clm
-> tests/data/train_settings/row_arguments.json, without those of TrainingArguments (training_arguments.py)

Run with the environment of requirements_templates.txt (tools/references/venv.sh templates). The classes are read from
their source, so that nothing of torch is needed. run_clm.py is no part of a package: its list is below.
"""
import ast
import importlib.metadata
import importlib.util
import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "train_settings" / "row_arguments.json"

CLASSES = [("trl", "scripts/utils.py", "ScriptArguments"), ("trl", "scripts/utils.py", "DatasetMixtureConfig"),
           ("trl", "trainer/model_config.py", "ModelConfig"),
           ("trl", "trainer/base_config.py", "_BaseConfig"), ("trl", "trainer/sft_config.py", "SFTConfig"),
           ("trl", "trainer/dpo_config.py", "DPOConfig")]

RUN_CLM = {
    "ModelArguments": {"model_name_or_path": None, "model_type": None, "config_overrides": None, "config_name": None,
                       "tokenizer_name": None, "cache_dir": None, "use_fast_tokenizer": True, "model_revision": "main",
                       "token": None, "trust_remote_code": False, "dtype": None, "torch_dtype": None,
                       "low_cpu_mem_usage": False},
    "DataTrainingArguments": {"dataset_name": None, "dataset_config_name": None, "train_file": None,
                              "validation_file": None, "max_train_samples": None, "max_eval_samples": None,
                              "streaming": False, "block_size": None, "overwrite_cache": False,
                              "validation_split_percentage": 5, "preprocessing_num_workers": None,
                              "keep_linebreaks": True},
}


def folder_of(package):
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])


def default_of(value):
    """The default as JSON has it; None where only running the code would tell."""
    if isinstance(value, ast.Call):
        given = {each.arg: each.value for each in value.keywords}
        value = given.get("default")
    try:
        found = ast.literal_eval(value)
    except (TypeError, ValueError):
        return None
    return None if isinstance(found, (list, dict)) else found


def arguments_of(package, file, name):
    tree = ast.parse((folder_of(package) / file).read_text())
    body = next(each.body for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name)
    for each in body:
        if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_") and "ClassVar" not in ast.unparse(each):
            yield each.target.id, default_of(each.value)


def main():
    rows = {}
    for package, file, name in CLASSES:
        for argument, default in arguments_of(package, file, name):
            # What a class inherits it may have with a default of its own. Of DPO's, those that sft does not have.
            if name != "DPOConfig" or argument not in rows:
                rows[argument] = {"name": argument, "of": name, "default": default}
    for name, arguments in RUN_CLM.items():
        for argument, default in arguments.items():
            rows.setdefault(argument, {"name": argument, "of": name, "default": default})
    versions = {each: importlib.metadata.version(each) for each in ("transformers", "trl")}
    text = ",\n".join("    " + json.dumps(row) for row in rows.values())
    FILE.write_text(f'{{\n  "made_with": {json.dumps(versions)},\n  "arguments": [\n{text}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
