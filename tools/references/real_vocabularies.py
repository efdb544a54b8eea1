"""Makes tokenizer.json files of published vocabularies, with transformers' own converters.

    $(tools/references/venv.sh vocabularies) tools/references/real_vocabularies.py FOLDER [NAME...]

Writes FOLDER/NAME/tokenizer.json. The vocabularies come from packages: Llama 3's from llama-models, Qwen's from
dashscope, Mistral's and tekken from mistral-common. Gemma, Llama 2 and Phi-3 publish no package: their steps stand here
around Mistral's first vocabulary, which is of the same kind (SentencePiece BPE with byte fallback). SmolLM3 has Llama
3's file, OLMo 2 its steps. check_vocabularies.py compares what Tessera and `tokenizers` make of texts with them.
"""

import argparse
import importlib.util
import json
import pathlib
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from transformers import LlamaTokenizer
from transformers.convert_slow_tokenizer import TikTokenConverter
from transformers.integrations.mistral.tokenizer import MistralConverter

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
MARK = "\u2581"


def packaged(package, path):
    """A file of a package that is not imported: it would need much that is not needed here."""
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / path


def template(tokenizer, bos):
    return processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1",
                                         special_tokens=[(bos, tokenizer.token_to_id(bos))])


def llama3():
    reserved = [f"<|reserved_special_token_{i}|>" for i in range(248)]
    named = {128000: "<|begin_of_text|>", 128001: "<|end_of_text|>", 128004: "<|finetune_right_pad_id|>",
             128006: "<|start_header_id|>", 128007: "<|end_header_id|>", 128008: "<|eom_id|>", 128009: "<|eot_id|>",
             128010: "<|python_tag|>"}
    special = [named[i] if i in named else reserved.pop(0) for i in range(128000, 128256)]
    tokenizer = TikTokenConverter(str(packaged("llama_models", "llama3/tokenizer.model")),
                                  extra_special_tokens=special).converted()
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template(tokenizer, "<|begin_of_text|>")])
    return tokenizer


def qwen():
    tokenizer = TikTokenConverter(str(packaged("dashscope", "resources/qwen.tiktoken")), pattern=QWEN2).converted()
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.model.ignore_merges = False
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True)
                                  for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>")])
    tokenizer.add_tokens([AddedToken(t, normalized=False)
                          for t in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    return tokenizer


def mistral(file, **how):
    """As transformers 5 loads a folder that holds only SentencePiece's model."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.model"
        path.write_bytes(packaged("mistral_common", f"data/{file}").read_bytes())
        tokenizer = LlamaTokenizer.from_pretrained(folder, legacy=False, **how).backend_tokenizer
    tokenizer.model.unk_token = "<unk>"
    tokenizer.post_processor = template(tokenizer, "<s>")
    return tokenizer


def characters_with(normalizer, pre_tokenizer, decoder):
    tokenizer = Tokenizer.from_str(made("mistral_v1").to_str())
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    else:
        tokenizer = without(tokenizer, "pre_tokenizer")
    tokenizer.decoder = decoder
    return tokenizer


def without(tokenizer, part):
    content = json.loads(tokenizer.to_str())
    content[part] = None
    return Tokenizer.from_str(json.dumps(content))


def llama2():
    """The older form, that Llama 2's file has: normalizers and no pre-tokenizer."""
    return characters_with(normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]),
                           None, decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                                    decoders.Fuse(), decoders.Strip(" ", 1, 0)]))


def phi3():
    """Llama 2's steps with tokens that take the white space behind them, most of them special."""
    tokenizer = llama2()
    tokenizer.add_special_tokens([AddedToken(t, rstrip=True, normalized=False, special=True)
                                  for t in ("<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>")])
    tokenizer.add_tokens([AddedToken("</s>", rstrip=True, normalized=False)])
    return tokenizer


def gemma3():
    tokenizer = characters_with(normalizers.Replace(" ", MARK),
                                pre_tokenizers.Split(" ", "merged_with_previous"),
                                decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                                   decoders.Fuse()]))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True)
                                  for t in ("<start_of_turn>", "<end_of_turn>")])
    tokenizer.add_tokens([AddedToken(t, normalized=False)
                          for t in ("\n\n", "\n\n\n", MARK * 2, MARK * 3, "<table>", "[multimodal]")])
    return tokenizer


def metaspace_split():
    """Metaspace in its first form: words, and a decoder of the same name."""
    return characters_with(None, pre_tokenizers.Metaspace(MARK, "always", True),
                           decoders.Metaspace(MARK, "always", True))


def olmo2():
    """The steps of GPT-4's files, on Qwen's vocabulary: three digits, no normal form, an end token as unknown one."""
    content = json.loads(made("qwen").to_str())
    content["normalizer"] = None
    content["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")
    return Tokenizer.from_str(json.dumps(content))


def tekken():
    return MistralConverter(str(packaged("mistral_common", "data/tekken_240911.json"))).converted()


MAKERS = {
    "llama3": llama3,
    "qwen": qwen,
    "mistral_v1": lambda: mistral("tokenizer.model.v1"),
    "mistral_v3": lambda: mistral("mistral_instruct_tokenizer_240323.model.v3"),
    "mistral_v7": lambda: mistral("mistral_instruct_tokenizer_241114.model.v7"),
    "tekken": tekken,
    "llama2": llama2,
    "phi3": phi3,
    "gemma3": gemma3,
    "olmo2": olmo2,
    "metaspace_split": metaspace_split,
}
_made = {}


def made(name):
    if name not in _made:
        _made[name] = MAKERS[name]()
    return _made[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", choices=[*MAKERS, []])
    options = parser.parse_args()
    for name in options.names or MAKERS:
        path = options.folder / name
        path.mkdir(parents=True, exist_ok=True)
        made(name).save(str(path / "tokenizer.json"), pretty=False)
        print(f"{name}: {made(name).get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
