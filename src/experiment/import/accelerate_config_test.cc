#include "experiment/import/accelerate_config.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

AccelerateConfig config_of(const std::string& yaml, std::vector<Remark>* told = nullptr) {
  Remarks remarks;
  const AccelerateConfig config = interpret_accelerate(read_accelerate_yaml(yaml, "a.yaml", remarks), remarks);
  if (told != nullptr) *told = remarks.all;
  return config;
}

TEST(AccelerateYaml, ReadsKeysAndOneLevelOfSections) {
  Remarks remarks;
  const AccelerateKeys keys = read_accelerate_yaml(
      "# made by accelerate config\ndistributed_type: FSDP  # or not\nfsdp_config:\n  fsdp_version: "
      "1\nmixed_precision: 'bf16'\n"
      "gpu_ids: null\nlist:\n  - a\n",
      "a.yaml", remarks);
  EXPECT_EQ(keys, (AccelerateKeys{
                      {"distributed_type", "FSDP"}, {"fsdp_config.fsdp_version", "1"}, {"mixed_precision", "bf16"}}));
  ASSERT_EQ(remarks.all.size(), 1U);
  EXPECT_EQ(remarks.all[0].place, "a.yaml:8");
}

TEST(AccelerateConfig, FsdpBecomesAnFsdpConfig) {
  const AccelerateConfig config = config_of(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_offload_params: true\n"
      "  fsdp_backward_prefetch_policy: BACKWARD_PRE\nmixed_precision: bf16\nnum_processes: 8\nnum_machines: 2\n");
  EXPECT_EQ(config.fsdp_config, Json::parse(R"({"backward_prefetch": "BACKWARD_PRE", "offload_params": true,
                                               "sharding_strategy": "SHARD_GRAD_OP"})"));
  EXPECT_EQ(config.settings.text("bf16"), "true");
  EXPECT_EQ(config.processes, 8);
  EXPECT_EQ(config.machines, 2);
}

TEST(AccelerateConfig, DeepspeedBecomesAStageOrAFile) {
  const AccelerateConfig stage = config_of(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  offload_param_device: cpu\n"
      "  offload_optimizer_device: none\n  gradient_clipping: 1.0\n");
  EXPECT_EQ(stage.settings.text("strategy"), "zero3");
  EXPECT_EQ(stage.settings.text("offload_param"), "true");
  EXPECT_FALSE(stage.settings.has("offload_optimizer"));
  EXPECT_EQ(
      config_of("distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n").deepspeed_file,
      "ds.json");
}

TEST(AccelerateConfig, SaysWhatItDoesNotUnderstand) {
  std::vector<Remark> told;
  config_of("distributed_type: TPU\nnew_key: 1\nmixed_precision: fp8\nmachine_rank: 0\n", &told);
  ASSERT_EQ(told.size(), 3U);
  for (const Remark& remark : told) EXPECT_EQ(remark.kind, Remark::Kind::kLeftOut);
}

TEST(AccelerateYaml, ABrokenFileIsRefusedByItsLine) {
  Remarks remarks;
  try {
    read_accelerate_yaml("a: 1\nb: [1, 2\n", "a.yaml", remarks);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("a.yaml:3: ")) << error.what();
  }
}

}  // namespace
}  // namespace tessera
