// StepMemory's prediction against measurement, for the models alone: gradients stay where autograd puts them.
#include "model/step_memory.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/resnet.h"
#include "model/run_modes.h"
#include "support/cpu_memory.h"
#include "support/processor.h"
#include "support/small_language_model.h"
#include "support/todays_decoders.h"

namespace tessera {
namespace {

// oneDNN allocates workspace per thread.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(num_before_); }

 private:
  int num_before_ = at::get_num_threads();
};

class PeakTape : public MemoryTape {
 public:
  void take(std::int64_t bytes) override { peak_ = std::max(peak_, now_ += bytes); }
  void give(std::int64_t bytes) override { now_ -= bytes; }
  void hand_over(std::int64_t) override {}  // it stays, as .grad
  std::int64_t now() const { return now_; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t now_ = 0, peak_ = 0;
};

struct Case {
  std::string model;
  at::ScalarType type = at::kFloat;
  double dropout = 0;
  bool checkpointed = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << ", " << c10::toString(c.type) << ", dropout " << c.dropout
       << (c.checkpointed ? ", checkpointed" : "");
}

const std::vector<std::string> kTodays = {"llama", "qwen3", "gemma3_text", "olmo2", "phi3"};

bool is_todays(const std::string& model) {
  return std::ranges::find(kTodays, model) != kTodays.end();
}

std::shared_ptr<LanguageModel> model_of(const Case& with) {
  Json config;
  if (is_todays(with.model)) {
    config = todays_decoder(with.model, 3, with.dropout);
  } else if (with.model == "gpt" || with.model == "gpt with positions") {
    config = Json{{"model_type", "tessera-gpt"},
                  {"vocab_size", 700},
                  {"hidden_size", 96},
                  {"num_layers", 3},
                  {"num_heads", 4},
                  {"ff_dim", 320},
                  {"dropout", with.dropout},
                  {"seq_length", 64},
                  {"positions", with.model == "gpt" ? "none" : "learned"}};
  } else {
    config = Json{{"model_type", "bloom"},
                  {"vocab_size", 700},
                  {"hidden_size", 96},
                  {"n_layer", 3},
                  {"n_head", 4},
                  {"hidden_dropout", with.dropout},
                  {"tie_word_embeddings", with.model != "untied bloom"}};
  }
  auto model = make_language_model(config, "a test");
  initialise(*model, 1);
  model->to(with.type);
  return model;
}

StepShape shape_of(const PackedBatch& batch, at::ScalarType type) {
  StepShape shape;
  shape.num_tokens = batch.input_ids.numel();
  shape.num_counted = batch.num_counted;
  shape.longest = batch.max_seqlen;
  shape.num_sequences = batch.cu_seqlens.numel() - 1;
  shape.element_bytes = static_cast<std::int64_t>(c10::elementSize(type));
  return shape;
}

struct Peaks {
  std::int64_t forward = 0, kept = 0, backward = 0;
  std::int64_t left = 0;
};

Peaks told(const StepMemory& step, bool checkpointed) {
  PeakTape tape;
  step.begin_forward(tape);
  for (std::size_t i = 0; i < step.num_units(); ++i) step.unit_forward(i, !checkpointed, tape);
  step.end_forward(tape);
  Peaks peaks{tape.peak(), tape.now()};
  step.end_backward(tape);
  for (std::size_t i = step.num_units(); i-- > 0;) {
    checkpointed ? recompute_and_backward(step, i, tape) : step.unit_backward(i, false, tape);
  }
  step.begin_backward(tape);
  peaks.backward = tape.peak();
  peaks.left = tape.now();
  return peaks;
}

class StepMemoryByModel : public testing::TestWithParam<Case> {};

TEST_P(StepMemoryByModel, IsWhatIsMeasured) {
  const Case& with = GetParam();
  if (with.type != at::kFloat && !has_planned_onednn()) GTEST_SKIP() << "half types go through oneDNN";
  const OneThread one_thread;
  start_counting_cpu_memory();
  const auto model = model_of(with);
  const PackedBatch batch = counted_batch({40, 17, 25});
  UnitRunner plain;
  CheckpointRunner recomputing(plain);
  UnitRunner& runner = with.checkpointed ? static_cast<UnitRunner&>(recomputing) : plain;
  model->loss(batch, runner).sum.backward();  // one-time allocations are done
  model->zero_grad();
  const std::int64_t before = live_cpu_bytes();
  Peaks found;
  reset_peak_cpu_bytes();
  const at::Tensor loss = model->loss(batch, runner).sum;
  found.forward = peak_cpu_bytes() - before;
  found.kept = live_cpu_bytes() - before;
  loss.backward();
  found.backward = peak_cpu_bytes() - before;
  const Peaks expected =
      told(*language_step_memory(model->config(), "a test", shape_of(batch, with.type)), with.checkpointed);
  const auto near = [](std::int64_t value) { return 0.01 * static_cast<double>(value); };
  EXPECT_NEAR(static_cast<double>(found.forward), static_cast<double>(expected.forward), near(found.forward));
  EXPECT_NEAR(static_cast<double>(found.kept), static_cast<double>(expected.kept), near(found.kept));
  EXPECT_NEAR(static_cast<double>(found.backward), static_cast<double>(expected.backward), near(found.backward));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model :
       {"bloom", "untied bloom", "gpt", "gpt with positions", "llama", "qwen3", "gemma3_text", "olmo2", "phi3"}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const double dropout : {0.0, 0.1}) {
        if (dropout > 0 && is_todays(model)) continue;  // of attention: single operators instead of a node
        for (const bool checkpointed : {false, true}) all.push_back({model, type, dropout, checkpointed});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, StepMemoryByModel, testing::ValuesIn(cases()));

// Also for a GPU, which this machine may not have.
TEST(StepMemory, LeavesNothingButGradients) {
  for (const Case& with : cases()) {
    const auto model = model_of(with);
    std::int64_t num_parameters = 0;
    for (const at::Tensor& parameter : model->parameters()) num_parameters += parameter.numel();
    StepShape shape = shape_of(counted_batch({40, 17, 25}), with.type);
    for (const bool on_gpu : {false, true}) {
      shape.on_gpu = on_gpu;
      const auto step = language_step_memory(model->config(), "a test", shape);
      EXPECT_EQ(told(*step, with.checkpointed).left, num_parameters * shape.element_bytes)
          << testing::PrintToString(with) << (on_gpu ? ", on a GPU" : "");
    }
  }
}

// `type` of the pictures: float32, or a type that the weights are cast to.
void expect_resnets_memory(std::int64_t num_pictures, std::int64_t side, at::ScalarType type) {
  const OneThread one_thread;
  start_counting_cpu_memory();
  constexpr std::int64_t kClasses = 10;
  ResNet50 model(kClasses);
  const at::Tensor images = at::randn({num_pictures, 3, side, side}).to(type),
                   labels = at::arange(num_pictures) % kClasses;
  StepShape shape;
  shape.num_tokens = num_pictures;
  shape.longest = side;
  shape.element_bytes = static_cast<std::int64_t>(c10::elementSize(type));
  shape.casts_parameters = true;
  const auto step = resnet50_step_memory(kClasses, shape);
  for (const bool checkpointed : {false, true}) {
    UnitRunner plain;
    CheckpointRunner recomputing(plain);
    UnitRunner& runner = checkpointed ? static_cast<UnitRunner&>(recomputing) : plain;
    const auto loss_of = [&] { return at::cross_entropy_loss(model.forward(images, runner).to(at::kFloat), labels); };
    loss_of().backward();
    model.zero_grad();
    const std::int64_t before = live_cpu_bytes();
    reset_peak_cpu_bytes();
    const at::Tensor loss = loss_of();
    const std::int64_t forward = peak_cpu_bytes() - before, kept = live_cpu_bytes() - before;
    loss.backward();
    const std::int64_t backward = peak_cpu_bytes() - before;
    const Peaks expected = told(*step, checkpointed);
    const auto expect_near = [&](std::int64_t found, std::int64_t wanted, const char* what) {
      EXPECT_NEAR(static_cast<double>(found), static_cast<double>(wanted), 0.05 * static_cast<double>(found))
          << what << (checkpointed ? ", checkpointed" : "");
    };
    expect_near(forward, expected.forward, "forward");
    expect_near(kept, expected.kept, "kept");
    expect_near(backward, expected.backward, "backward");
  }
}

// Also for a GPU.
TEST(ResNetStepMemory, LeavesNothingButGradients) {
  constexpr std::int64_t kClasses = 10;
  std::int64_t num_parameters = 0;
  for (const at::Tensor& parameter : ResNet50(kClasses).parameters()) num_parameters += parameter.numel();
  for (const bool on_gpu : {false, true}) {
    for (const std::int64_t element_bytes : {2, 4}) {
      for (const bool checkpointed : {false, true}) {
        StepShape shape;
        shape.num_tokens = 3;
        shape.longest = 96;
        shape.element_bytes = element_bytes;
        shape.on_gpu = on_gpu;
        shape.casts_parameters = true;
        EXPECT_EQ(told(*resnet50_step_memory(kClasses, shape), checkpointed).left, num_parameters * kFloatBytes)
            << element_bytes << " bytes" << (checkpointed ? ", checkpointed" : "") << (on_gpu ? ", on a GPU" : "");
      }
    }
  }
}

TEST(ResNetStepMemory, IsWhatIsMeasured) {
  if (!kIsArm) GTEST_SKIP() << "convolutions go through oneDNN";
  expect_resnets_memory(6, 96, at::kFloat);
}

TEST(ResNetStepMemory, IsWhatIsMeasuredWithCastWeights) {
  if (!has_planned_onednn()) GTEST_SKIP() << "convolutions in half types go through oneDNN";
  expect_resnets_memory(2, 32, at::kBFloat16);
}

}  // namespace
}  // namespace tessera
