#include "settings/foreign_config.h"
#include "settings/test_load.h"

namespace tessera {
namespace {

class Fsdp : public LoadTest {
 protected:
  LoadedTrainSettings with(const std::string& json, const Words& words = {"--fsdp", "full_shard auto_wrap"}) {
    return load(with_file("--fsdp_config", "fsdp.json", json, words));
  }
  std::string refusal_with(const std::string& json, const Words& words = {"--fsdp", "full_shard auto_wrap"}) {
    return refusal(with_file("--fsdp_config", "fsdp.json", json, words));
  }
};

TEST_F(Fsdp, WordsGiveStrategyAndOffload) {
  for (const char* strategy : {"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"}) {
    const TrainSettings s = load({"--fsdp", std::string(strategy) + " auto_wrap"}).settings;
    EXPECT_EQ(s.spread.strategy, strategy);
    EXPECT_FALSE(s.spread.offload_parameters || s.spread.offload_optimizer);
  }
  const LoadedTrainSettings loaded = load({"--fsdp", "full_shard auto_wrap offload"});
  EXPECT_TRUE(loaded.settings.spread.offload_parameters);
  EXPECT_TRUE(loaded.settings.spread.offload_optimizer);
  EXPECT_TRUE(loaded.settings.spread.pin_memory);
  EXPECT_EQ(origin(loaded, "offload_param"), "--fsdp: offload");
  EXPECT_FALSE(load({"--fsdp", "full_shard offload", "--no_pin_memory"}).settings.spread.pin_memory);
  EXPECT_EQ(load({"--fsdp", "True"}).settings.spread.strategy, "full_shard");
  EXPECT_EQ(load({"--fsdp="}).settings.spread.strategy, "single");
}

TEST_F(Fsdp, WrongWordsAreRefused) {
  EXPECT_EQ(refusal({"--fsdp", "full_shrad"}),
            "--fsdp: unknown word 'full_shrad', did you mean 'full_shard'?; known words: full_shard, shard_grad_op, "
            "hybrid_shard, hybrid_shard_zero2, no_shard, auto_wrap, offload");
  EXPECT_EQ(
      refusal({"--fsdp", "offload"}),
      "--fsdp \"offload\": needs one of full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2, no_shard as well");
  EXPECT_EQ(refusal({"--fsdp", "full_shard shard_grad_op"}),
            "--fsdp \"full_shard shard_grad_op\": full_shard and shard_grad_op exclude each other");
  EXPECT_EQ(load({"--fsdp", "hybrid_shard_zero2 auto_wrap"}).settings.spread.strategy, "hybrid_shard_zero2");
  EXPECT_EQ(refusal({"--fsdp", "full_shard", "--strategy=zero3"}).substr(0, 57),
            "strategy is zero3 (command line) and full_shard (--fsdp, ");
  EXPECT_EQ(refusal({"--fsdp", "no_shard offload"}),
            "offload_param=true (--fsdp: offload): needs a strategy that splits the parameters (zero3, zero3_hpz, "
            "full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2), found strategy=no_shard (--fsdp: no_shard)");
}

TEST_F(Fsdp, EveryKeyOfTheContractIsTaken) {
  const LoadedTrainSettings loaded = with(R"({"transformer_layer_cls_to_wrap": ["BloomBlock"],
    "backward_prefetch": "backward_post", "forward_prefetch": false, "sync_module_states": true,
    "limit_all_gathers": true, "use_orig_params": true, "activation_checkpointing": true, "min_num_params": 0,
    "cpu_ram_efficient_loading": true, "offload_to_cpu": true, "state_dict_type": "FULL_STATE_DICT",
    "mixed_precision": {"enabled": true, "param_dtype": "bf16", "reduce_dtype": "torch.float32",
                        "buffer_dtype": "bfloat16"}})");
  const TrainSettings& s = loaded.settings;
  EXPECT_EQ(s.wrap.wrap, UnitWrap::kByClass);
  EXPECT_EQ(s.wrap.classes, std::vector<std::string>{"BloomBlock"});
  EXPECT_EQ(s.spread.backward_prefetch, BackwardPrefetch::kPost);
  EXPECT_FALSE(s.spread.forward_prefetch);
  EXPECT_TRUE(s.spread.sync_module_states);
  EXPECT_TRUE(s.loop.gradient_checkpointing);
  EXPECT_TRUE(s.spread.offload_parameters && s.spread.offload_optimizer);
  EXPECT_EQ(s.precision.compute, NumberType::kBFloat16);
  EXPECT_EQ(s.precision.reduce, NumberType::kFloat32);
  EXPECT_EQ(s.precision.buffers, NumberType::kBFloat16);
  EXPECT_EQ(
      notes(loaded),
      "fsdp.json: accepted, but without effect here: limit_all_gathers (at most two blocks are gathered at a time), "
      "use_orig_params (parameters always keep their own names and shapes), cpu_ram_efficient_loading (every rank "
      "reads only what it keeps), state_dict_type (the model's folder and checkpoints are whole files)\n"
      "buffer_dtype=bf16 (fsdp.json: mixed_precision.buffer_dtype) changes nothing: the model has no buffers\n");
}

TEST_F(Fsdp, TheWorkshopsFileIsTaken) {
  const TrainSettings s = with(R"({"fsdp_transformer_layer_cls_to_wrap":
    "transformers.models.bloom.modeling_bloom.BloomBlock", "fsdp_backward_prefetch": "BACKWARD_POST",
    "fsdp_forward_prefetch": "True", "fsdp_sync_module_states": "true"})")
                              .settings;
  EXPECT_EQ(s.wrap.classes, std::vector<std::string>{"BloomBlock"});
  EXPECT_EQ(s.spread.backward_prefetch, BackwardPrefetch::kPost);
  EXPECT_TRUE(s.spread.forward_prefetch);
}

TEST_F(Fsdp, PrefetchHasThreeWords) {
  using P = BackwardPrefetch;
  EXPECT_EQ(with(R"({"backward_prefetch": "backward_pre"})").settings.spread.backward_prefetch, P::kPre);
  EXPECT_EQ(with(R"({"backward_prefetch": "no_prefetch"})").settings.spread.backward_prefetch, P::kNone);
  EXPECT_EQ(with(R"({"backward_prefetch": "none"})").settings.spread.backward_prefetch, P::kNone);
  EXPECT_EQ(with(R"({"backward_prefetch": null})").settings.spread.backward_prefetch, P::kPre);  // our default
  EXPECT_EQ(refusal_with(R"({"backward_prefetch": "pre"})"),
            "fsdp.json:1:23: backward_prefetch: expected backward_pre, backward_post or no_prefetch, found \"pre\"");
}

TEST_F(Fsdp, UnitsAreBlocksClassesOrSizes) {
  EXPECT_EQ(load({"--fsdp", "full_shard auto_wrap"}).settings.wrap.wrap, UnitWrap::kBlocks);
  EXPECT_EQ(with(R"({"auto_wrap_policy": "NO_WRAP"})").settings.wrap.wrap, UnitWrap::kNone);
  const TrainSettings by_size = with(R"({"min_num_params": 2000})").settings;
  EXPECT_EQ(by_size.wrap.wrap, UnitWrap::kBySize);
  EXPECT_EQ(by_size.wrap.min_num_params, 2000);
  EXPECT_EQ(refusal_with(R"({"min_num_params": 2000, "transformer_layer_cls_to_wrap": "X"})"),
            "fsdp.json:1:20: min_num_params: excludes transformer_layer_cls_to_wrap; leave one out");
  EXPECT_EQ(refusal({"--fsdp=full_shard", "--fsdp_min_num_params=3", "--fsdp_transformer_layer_cls_to_wrap=X"}),
            "--wrap_classes=X (command line) and --min_num_params=3 (command line) exclude each other; give one");
  const TrainSettings two =
      load({"--fsdp=full_shard", "--fsdp_transformer_layer_cls_to_wrap", "a.B, torch.nn.TransformerEncoderLayer"})
          .settings;
  EXPECT_EQ(two.wrap.classes, (std::vector<std::string>{"B", "TransformerEncoderLayer"}));
  EXPECT_EQ(refusal({"--fsdp=full_shard", "--wrap=class"}), "--wrap=class (command line): needs --wrap_classes");
  const LoadedTrainSettings derived = load({"--fsdp=full_shard", "--min_num_params=3"});
  EXPECT_EQ(derived.settings.wrap.wrap, UnitWrap::kBySize);
  EXPECT_EQ(derived.schema->at("wrap").text(), "size");
  EXPECT_EQ(derived.schema->at("wrap").origin(), "follows from --min_num_params");
}

TEST_F(Fsdp, TheCommandLineOverrulesTheFileAndSaysSo) {
  const LoadedTrainSettings loaded =
      with(R"({"forward_prefetch": true})", {"--fsdp=full_shard", "--forward_prefetch=False"});
  EXPECT_FALSE(loaded.settings.spread.forward_prefetch);
  EXPECT_EQ(notes(loaded),
            "--forward_prefetch=false (command line) overrides forward_prefetch=true (fsdp.json:1:22)\n");
}

TEST_F(Fsdp, TheFileOverrulesAnEnvFileAndSaysSo) {
  const std::string env = file("env.sh", "FP16=False\nBF16=True\n");
  const LoadedTrainSettings loaded = with(R"({"mixed_precision": {"enabled": true, "param_dtype": "fp16"}})",
                                          {"--fsdp=full_shard", "--env_file", env});
  EXPECT_EQ(loaded.settings.precision.compute, NumberType::kFloat16);
  EXPECT_EQ(notes(loaded),
            "fp16=true (fsdp.json:1:54, mixed_precision.param_dtype) overrides fp16=false (FP16 in env.sh)\n"
            "bf16=false (fsdp.json:1:54, mixed_precision.param_dtype) overrides bf16=true (BF16 in env.sh)\n");
}

TEST_F(Fsdp, ADeviceIsAcceptedWithoutEffect) {
  EXPECT_EQ(notes(with(R"({"device_id": 0})")),
            "fsdp.json: accepted, but without effect here: device_id (a rank's device follows from its place on the "
            "node)\n");
}

TEST_F(Fsdp, WordsAndFileMustAgree) {
  EXPECT_EQ(refusal_with(R"({"offload_to_cpu": false})", {"--fsdp", "full_shard offload"}),
            "offload_param is true (--fsdp: offload) and false (fsdp.json:1:20, offload_to_cpu): both mean the same "
            "setting; give one value");
  EXPECT_EQ(refusal_with(R"({"sharding_strategy": "SHARD_GRAD_OP"})").substr(0, 70),
            "strategy is full_shard (--fsdp: full_shard) and shard_grad_op (fsdp.js");
  EXPECT_EQ(with(R"({"sharding_strategy": 2})", {}).settings.spread.strategy, "shard_grad_op");
  EXPECT_EQ(with(R"({"version": 2, "reshard_after_forward": true})", {}).settings.spread.strategy, "full_shard");
}

TEST_F(Fsdp, MistakesAreRefusedByLineAndColumn) {
  EXPECT_EQ(refusal_with("{\n  \"forward_prefech\": true\n}"),
            "fsdp.json:2:3: forward_prefech: unknown key; did you mean forward_prefetch?");
  EXPECT_EQ(refusal_with(R"({"fsdp_forward_prefetch": 3})"),
            "fsdp.json:1:27: forward_prefetch: expected true or false, found 3");
  EXPECT_EQ(refusal_with(R"({"forward_prefetch": true, "fsdp_forward_prefetch": true})"),
            "fsdp.json:1:28: fsdp_forward_prefetch: is the same as forward_prefetch, which is already given");
  EXPECT_EQ(refusal_with(R"({"mixed_precision": {"enabled": true}})"),
            "fsdp.json:1:2: mixed_precision: needs param_dtype: fp16 or bf16");
  EXPECT_EQ(refusal_with(R"({"mixed_precision": {"param_dtype": "int8"}})"),
            "fsdp.json:1:37: mixed_precision.param_dtype: expected fp32, fp16 or bf16, found \"int8\"");
  EXPECT_EQ(refusal_with(R"({"xla": true})"), "fsdp.json:1:9: xla: true is not possible here: there are no TPUs");
  EXPECT_EQ(refusal_with(R"({"sync_module_states": false, "cpu_ram_efficient_loading": true})"),
            "fsdp.json:1:60: cpu_ram_efficient_loading: needs sync_module_states: true, or ranks would start with "
            "different values");
  EXPECT_EQ(refusal_with("{}", {}),
            "--fsdp_config: needs --fsdp \"full_shard auto_wrap\" or another of its strategies, found strategy=auto "
            "(default)");
  EXPECT_EQ(refusal({"--fsdp=full_shard", "--fsdp_config=/nonexistent.json"}).substr(0, 29),
            "cannot read /nonexistent.json");
}

TEST_F(Fsdp, PrecisionOfTheFileAndOfTheCommandLineExcludeEachOther) {
  EXPECT_EQ(
      refusal_with(R"({"mixed_precision": {"enabled": true, "param_dtype": "fp16"}})", {"--fsdp=full_shard", "--bf16"}),
      "fp16=true (fsdp.json: mixed_precision.param_dtype) and --bf16=true (command line) exclude each other; choose "
      "one");
  EXPECT_EQ(with(R"({"mixed_precision": {"enabled": false}})").settings.precision.compute, NumberType::kFloat32);
}

}  // namespace
}  // namespace tessera
