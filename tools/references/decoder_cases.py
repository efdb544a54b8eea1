"""The cases of decoders.py: tiny models of today's decoder families, one for each variant that changes the computation.

`settings` are the keys of config.json that a case sets. `without` are changes of them that must change the logits: they
prove that the reference shows what it is named for. Rows are as long as in models.py unless a case needs positions beyond
an original length or a window. `old_form` gives the config.json that transformers 4 would have for the same model.
"""

from models import LENGTHS

# On both sides of 12 and 16 positions, and on 12 itself.
LONG = [9, 1, 26, 12, 17]
TINY = {"vocab_size": 48, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
# hidden_size / num_attention_heads is 8: for families whose config has no head_dim.
WIDE = {**TINY, "hidden_size": 32, "intermediate_size": 16}
DEEP = {**TINY, "num_attention_heads": 2, "num_key_value_heads": 1}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}


class Case:
    def __init__(self, family, base=TINY, lengths=LENGTHS, without=(), **settings):
        self.family, self.settings, self.lengths, self.without = family, {**base, **settings}, lengths, without


def rope(**parameters):
    return {"rope_theta": 10000.0, **parameters}


def llama_with(without=(), positions=64, **parameters):
    """A llama with these rope parameters; it must differ from one with plain ones, and with each change of `without`."""
    parameters = rope(**parameters)
    plain = {"rope_type": "default", "rope_theta": parameters["rope_theta"]}
    changed = [{"rope_parameters": each} for each in (plain, *({**parameters, **change} for change in without))]
    return Case("llama", lengths=LONG, head_dim=8, max_position_embeddings=positions, rope_parameters=parameters,
                without=changed)


# With a theta this small the ramp between the frequencies that are kept and those that are divided has a middle.
YARN = dict(rope_type="yarn", rope_theta=20.0, factor=4.0, original_max_position_embeddings=16)
YARN_FULL = dict(**YARN, beta_fast=2.0, beta_slow=0.5)
SHORT, LONG_FACTORS = [1.0, 1.1, 1.3, 1.7], [1.2, 2.1, 3.4, 5.0]
GEMMA_ROPE = {"sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
              "full_attention": {"rope_type": "default", "rope_theta": 10000.0}}
GEMMA_SCALED = {**GEMMA_ROPE, "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0}}
# OLMo 3's files of version 4 have one theta for both: its default. With so small a beta_slow the ramp has a middle.
PLAIN_OLMO3 = {"rope_type": "default", "rope_theta": 500000.0}
YARN_OLMO3 = dict(rope_type="yarn", rope_theta=500000.0, factor=4.0, original_max_position_embeddings=16,
                  attention_factor=1.2, beta_slow=0.001)


def olmo3_rope(full, sliding=PLAIN_OLMO3):
    return {"rope_parameters": {"full_attention": full, "sliding_attention": sliding}}


CASES = {
    "llama": Case("llama", head_dim=8, rms_norm_eps=1e-5, rope_parameters=rope(rope_theta=500000.0),
                  without=({"rope_parameters": PLAIN},)),
    "llama_tied_biases": Case("llama", head_dim=8, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "llama_mqa": Case("llama", head_dim=8, num_key_value_heads=1, rms_norm_eps=1e-5,
                      rope_parameters=rope(rope_theta=777.7), without=({"rms_norm_eps": 1e-3},)),
    "llama_linear": llama_with(rope_type="linear", factor=2.5),
    "llama_dynamic": llama_with(positions=12, rope_type="dynamic", factor=3.0),
    # Wave lengths: 6.3 is below 48 / 4 (kept), 30 between (blended), 140 and 660 are above 48 / 1 (divided).
    "llama_rope3": llama_with(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                              original_max_position_embeddings=48,
                              without=({"factor": 4.0}, {"low_freq_factor": 2.0}, {"high_freq_factor": 8.0})),
    "llama_yarn": llama_with(**YARN, without=({"factor": 2.0}, {"original_max_position_embeddings": 32})),
    "llama_yarn_full": llama_with(**YARN_FULL, truncate=False, mscale=0.9, mscale_all_dim=0.4,
                                  without=({"truncate": True}, {"beta_fast": 1.0}, {"beta_slow": 1.0}, {"mscale": 0.4},
                                           {"mscale_all_dim": None})),
    "llama_yarn_factor": llama_with(**YARN_FULL, attention_factor=1.4, without=({"attention_factor": None},)),
    "mistral": Case("mistral", head_dim=8, sliding_window=6, without=({"sliding_window": None}, {"sliding_window": 7})),
    "mistral_full": Case("mistral", DEEP, head_dim=16, sliding_window=None, rms_norm_eps=1e-5,
                         without=({"sliding_window": 8},)),
    "qwen2": Case("qwen2", WIDE, tie_word_embeddings=True, rope_parameters=rope(rope_theta=1000000.0),
                  without=({"rope_parameters": PLAIN},)),
    "qwen2_window": Case("qwen2", DEEP, num_hidden_layers=3, use_sliding_window=True, sliding_window=4,
                         max_window_layers=1, without=({"use_sliding_window": False}, {"sliding_window": 5},
                                                       {"layer_types": ["sliding_attention"] * 3})),
    "qwen2_yarn": Case("qwen2", DEEP, LONG, max_position_embeddings=64, rope_parameters=YARN,
                       without=({"rope_parameters": PLAIN},)),
    "qwen3": Case("qwen3", DEEP, head_dim=16, rope_parameters=rope(rope_theta=1000000.0), without=({"rope_parameters": PLAIN},)),
    "qwen3_tied": Case("qwen3", head_dim=8, tie_word_embeddings=True),
    "gemma3": Case("gemma3_text", DEEP, intermediate_size=16, num_hidden_layers=6, head_dim=8, sliding_window=5,
                   query_pre_attn_scalar=11, rope_parameters=GEMMA_ROPE,
                   without=({"sliding_window": 6}, {"query_pre_attn_scalar": 8}, {"rms_norm_eps": 1e-3})),
    "gemma3_scaled": Case("gemma3_text", DEEP, LONG, num_hidden_layers=3, sliding_window_pattern=3, head_dim=8,
                          sliding_window=5, query_pre_attn_scalar=8, rope_parameters=GEMMA_SCALED,
                          without=({"rope_parameters": GEMMA_ROPE},)),
    "phi3": Case("phi3", WIDE, sliding_window=7, without=({"sliding_window": None}, {"sliding_window": 8})),
    "phi3_partial": Case("phi3", DEEP, tie_word_embeddings=True, without=({"rope_parameters": PLAIN},),
                         rope_parameters=rope(rope_type="default", partial_rotary_factor=0.5)),
    "phi3_longrope": Case("phi3", DEEP, LONG, original_max_position_embeddings=12, max_position_embeddings=48,
                          rope_parameters=rope(rope_type="longrope", short_factor=SHORT, long_factor=LONG_FACTORS),
                          without=({"rope_parameters": PLAIN}, {"original_max_position_embeddings": 11})),
    # Phi-4-mini: half of each head, so half as many factors.
    "phi3_longrope_partial": Case(
        "phi3", DEEP, LONG, original_max_position_embeddings=12, max_position_embeddings=48, tie_word_embeddings=True,
        rope_parameters=rope(rope_type="longrope", short_factor=SHORT[:2], long_factor=LONG_FACTORS[2:],
                             partial_rotary_factor=0.5),
        without=({"original_max_position_embeddings": 40},)),
    "olmo2": Case("olmo2", WIDE, rope_parameters=rope(rope_theta=500000.0), without=({"rope_parameters": PLAIN},)),
    # Two layers and long rows: with four layers the original's own losses in bf16 are up to 3 * 2^-7 away, as OLMo 2's are.
    "olmo3": Case("olmo3", WIDE, LONG, sliding_window=5, layer_types=["sliding_attention", "full_attention"],
                  without=({"sliding_window": 6}, {"layer_types": ["sliding_attention"] * 2}, olmo3_rope(PLAIN, PLAIN),
                           {"rms_norm_eps": 1e-3})),
    "olmo3_yarn": Case("olmo3", WIDE, LONG, max_position_embeddings=64, sliding_window=6,
                       layer_types=["full_attention", "sliding_attention"], **olmo3_rope(YARN_OLMO3),
                       without=(olmo3_rope(PLAIN_OLMO3), olmo3_rope(YARN_OLMO3, YARN_OLMO3),
                                olmo3_rope({**YARN_OLMO3, "attention_factor": 1.0}),
                                olmo3_rope({**YARN_OLMO3, "beta_slow": 1.0}), {"layer_types": ["full_attention"] * 2})),
    "smollm3": Case("smollm3", DEEP, num_hidden_layers=4, rope_parameters=rope(rope_theta=5000000.0),
                    without=({"no_rope_layers": [1, 1, 1, 1]},)),
    "smollm3_window": Case("smollm3", DEEP, num_hidden_layers=3, no_rope_layer_interval=2, use_sliding_window=True,
                           sliding_window=4, tie_word_embeddings=False,
                           without=({"use_sliding_window": False}, {"no_rope_layers": [1, 1, 1]})),
    "gpt2": Case("gpt2", {}, vocab_size=48, n_embd=16, n_layer=2, n_head=2, n_positions=48, bos_token_id=1,
                 eos_token_id=1, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "gpt2_variants": Case("gpt2", {}, vocab_size=48, n_embd=16, n_layer=2, n_head=2, n_positions=48, n_inner=40,
                          layer_norm_epsilon=1e-3, activation_function="gelu", tie_word_embeddings=False, bos_token_id=1,
                          eos_token_id=1, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                          without=({"layer_norm_epsilon": 1e-5}, {"activation_function": "relu"})),
}


def old_form(config):
    """The same model's config.json as transformers 4 wrote it."""
    old = {**config, "torch_dtype": config["dtype"], "transformers_version": "4.45.0"}
    family, parameters = old["model_type"], old.pop("rope_parameters", None)
    del old["dtype"]
    # Keys of later releases, keys that were not written when null, and the default of version 4's base class.
    for key in ("layer_types", "_sliding_window_pattern", "output_attentions", "use_bidirectional_attention"):
        if (family, key) != ("olmo3", "layer_types"):
            old.pop(key, None)
    for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if old.get(key, 0) is None:
            del old[key]
    if family in ("gemma3_text", "smollm3", "gpt2") and old["tie_word_embeddings"]:
        del old["tie_word_embeddings"]
    if family == "gemma3_text":
        old["rope_local_base_freq"] = parameters["sliding_attention"]["rope_theta"]
        old.setdefault("sliding_window_pattern", 6)
        old["cache_implementation"] = "hybrid"
        parameters = parameters["full_attention"]
    if family == "olmo3":
        assert parameters["sliding_attention"] == PLAIN_OLMO3 and parameters["full_attention"]["rope_theta"] == 500000.0
        parameters = parameters["full_attention"]
    if parameters is not None:
        old.update(old_rope(family, dict(parameters)))
    return old


def old_rope(family, parameters):
    old = {"rope_theta": parameters.pop("rope_theta"), "rope_scaling": None}
    if "partial_rotary_factor" in parameters:
        old["partial_rotary_factor"] = parameters.pop("partial_rotary_factor")
    if family == "phi3":  # stands outside, in both forms
        parameters.pop("original_max_position_embeddings", None)
    if parameters["rope_type"] != "default":
        # The first files of these types say "type"; gemma3's, which are younger, say "rope_type".
        if family != "gemma3_text" and (family == "qwen2" or parameters["rope_type"] in ("linear", "dynamic", "longrope")):
            parameters["type"] = parameters.pop("rope_type")
        old["rope_scaling"] = parameters
    return old
