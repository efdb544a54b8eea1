// The memory plan against what libtorch's CUDA allocator counts: models of BLOOM-560M's, Llama-3.2-1B's, Qwen3-0.6B's
// and Gemma-3-1B's sizes on one rank.
#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <gtest/gtest.h>

#include "comm/gpu_support.h"
#include "gpu/flavour.h"
#include "model/generation.h"
#include "model/language_model.h"
#include "model/run_modes.h"
#include "parallel/sharded_optimizer.h"
#include "plan/memory_plan.h"

namespace tessera {
namespace {

constexpr double kTolerance = 0.05;
constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);

Json bloom_560m() {
  return {{"model_type", "bloom"}, {"vocab_size", 250880}, {"n_embed", 1024}, {"n_layer", 24}, {"n_head", 16}};
}

Json llama_like(const char* type, std::int64_t vocab, std::int64_t hidden, std::int64_t inner, std::int64_t layers) {
  return {{"model_type", type},         {"vocab_size", vocab},         {"hidden_size", hidden},
          {"intermediate_size", inner}, {"num_hidden_layers", layers}, {"tie_word_embeddings", true},
          {"pad_token_id", nullptr}};
}

Json llama_1b() {
  Json config = llama_like("llama", 128256, 2048, 8192, 16);
  config.update({{"num_attention_heads", 32}, {"num_key_value_heads", 8}, {"head_dim", 64}});
  return config;
}

Json qwen3_600m() {
  Json config = llama_like("qwen3", 151936, 1024, 3072, 28);
  config.update({{"num_attention_heads", 16}, {"num_key_value_heads", 8}, {"head_dim", 128}});
  return config;
}

Json gemma3_1b() {
  Json config = llama_like("gemma3_text", 262144, 1152, 6912, 26);
  config.update({{"num_attention_heads", 4}, {"num_key_value_heads", 1}, {"head_dim", 256}, {"sliding_window", 512}});
  return config;
}

struct Case {
  std::string name, strategy;
  at::ScalarType type = at::kBFloat16;
  int num_micro_steps = 1;
  std::int64_t num_sequences = 8;
  bool checkpointed = false, offload_optimizer = false, offload_parameters = false;
  Json (*config)() = bloom_560m;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

Case decoder_case(const std::string& name, Json (*config)(), bool checkpointed = false) {
  Case made{name, checkpointed ? "full_shard" : "single"};
  made.checkpointed = checkpointed;
  made.config = config;
  return made;
}

PackedBatch batch_of(const Case& with, std::int64_t length) {
  std::vector<std::vector<std::int64_t>> sequences;
  for (std::int64_t i = 0; i < with.num_sequences; ++i) {
    sequences.emplace_back();
    for (std::int64_t t = 0; t < length; ++t) sequences.back().push_back((i * 7919 + t * 131) % 128000);
  }
  PackedBatch batch = pack_sequences(sequences, kGpu);
  batch.targets.copy_(batch.input_ids);
  batch.num_counted = batch.input_ids.numel();
  return batch;
}

MemoryPlan plan_of(const Case& with, const PackedBatch& batch) {
  MemoryPlanOptions options;
  options.spread = SpreadOptions{.strategy = with.strategy,
                                 .offload_optimizer = with.offload_optimizer,
                                 .offload_parameters = with.offload_parameters};
  options.types = {with.type, with.type, with.num_micro_steps > 1};
  options.num_micro_steps = with.num_micro_steps;
  options.checkpoints_activations = with.checkpointed;
  StepShape shape;
  shape.num_tokens = batch.input_ids.numel();
  shape.num_counted = batch.num_counted;
  shape.longest = batch.max_seqlen;
  shape.num_sequences = with.num_sequences;
  shape.element_bytes = static_cast<std::int64_t>(c10::elementSize(with.type));
  shape.on_gpu = true;
  const auto model = make_language_model(with.config(), "a test", at::device(at::kMeta));
  const auto step = language_step_memory(with.config(), "a test", shape);
  return plan_memory(planned_units(*model, model->units()), step.get(), options);
}

class PeakOnGpu : public testing::TestWithParam<Case> {};

TEST_P(PeakOnGpu, IsAsPlanned) {
  const Case& with = GetParam();
  run_thread_ranks(1, {}, [&](World& world) {
    gpu_support()->set_device(0);
    const PackedBatch batch = batch_of(with, 512);
    const std::int64_t before = at::accelerator::getDeviceStats(0).allocated_bytes[kAll].current;
    const auto model = make_language_model(with.config(), "a test", at::device(at::kMeta));
    EngineOptions options;
    options.spread = SpreadOptions{.strategy = with.strategy,
                                   .offload_optimizer = with.offload_optimizer,
                                   .offload_parameters = with.offload_parameters};
    options.types = {with.type, with.type, with.num_micro_steps > 1};
    options.device = kGpu;
    options.first_values = [](const std::string&, at::Tensor values) { values.normal_(0, 0.02); };
    Engine engine(world, *model, model->units(), options);
    ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
    CheckpointRunner recomputing(engine);
    at::accelerator::resetPeakStats(0);
    const std::int64_t resident = at::accelerator::getDeviceStats(0).allocated_bytes[kAll].current - before;
    for (int step = 0; step < 3; ++step) {
      for (int i = 0; i < with.num_micro_steps; ++i) {
        at::Tensor loss;
        {
          const auto pass = engine.forward();
          loss = model->loss(batch, with.checkpointed ? static_cast<UnitRunner&>(recomputing) : engine).sum;
        }
        engine.backward(loss, i + 1 == with.num_micro_steps);
      }
      optimizer.update({.learning_rate = 1e-5, .divisor = 1e5});
    }
    at::accelerator::synchronizeDevice(0);
    const std::int64_t peak = at::accelerator::getDeviceStats(0).allocated_bytes[kAll].peak - before;
    const MemoryPlan plan = plan_of(with, batch);
    // The allocator rounds each of some hundred buffers up to 512 bytes.
    EXPECT_NEAR(static_cast<double>(resident), static_cast<double>(plan.resident.total()), 1 << 20);
    EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(plan.peak.total()),
                kTolerance * static_cast<double>(peak))
        << plan.peak_moment;
    fmt::print("{}: peak {:.3f} GiB, planned {:.3f} GiB ({})\n", with.name, static_cast<double>(peak) / (1 << 30),
               static_cast<double>(plan.peak.total()) / (1 << 30), plan.peak_moment);
  });
}

INSTANTIATE_TEST_SUITE_P(All, PeakOnGpu,
                         testing::Values(Case{"single", "single"}, Case{"float32", "single", at::kFloat, 1, 2},
                                         Case{"accumulating", "full_shard", at::kBFloat16, 4},
                                         Case{"large_batch", "ddp", at::kBFloat16, 1, 32},
                                         Case{"checkpointed", "full_shard", at::kBFloat16, 1, 32, true},
                                         Case{"optimizer_offloaded", "zero2", at::kBFloat16, 1, 8, false, true},
                                         Case{"all_offloaded", "zero3", at::kHalf, 1, 8, false, true, true},
                                         Case{"all_offloaded_in_bf16", "zero3", at::kBFloat16, 1, 8, false, true, true},
                                         decoder_case("llama", llama_1b),
                                         decoder_case("llama_recomputed", llama_1b, true),
                                         decoder_case("qwen3", qwen3_600m), decoder_case("gemma3", gemma3_1b)),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tessera
