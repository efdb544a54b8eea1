#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/run_modes.h"
#include "support/cpu_memory.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

std::vector<at::Tensor> gradients_of(LanguageModel& model, const PackedBatch& batch, UnitRunner& runner) {
  model.zero_grad();
  model.loss(batch, runner).sum.backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : model.parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

// Counts the calls per unit.
class CountingRunner : public UnitRunner {
 public:
  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override {
    names.push_back(unit.name);
    return body(input);
  }
  std::vector<std::string> names;
};

TEST(Checkpointing, GivesTheSameBitsAndRunsUnitsAgainFromTheLast) {
  const auto model = small_bloom(0.1);
  const PackedBatch batch = counted_batch({7, 12, 1});
  CountingRunner plain, inner;
  CheckpointRunner checkpointed(inner);
  const auto expected = gradients_of(*model, batch, plain), found = gradients_of(*model, batch, checkpointed);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(expected[i], found[i])) << i;
  const std::string name = "transformer.h.";
  EXPECT_EQ(inner.names,
            (std::vector<std::string>{name + "0", name + "1", name + "2", name + "2", name + "1", name + "0"}));
}

TEST(Checkpointing, ReachesTheUnitsWhoseInputNeedsNoGradient) {
  const auto model = small_bloom();
  for (auto& item : model->named_parameters()) {
    if (!item.key().starts_with("transformer.h.")) item.value().set_requires_grad(false);
  }
  UnitRunner plain;
  CheckpointRunner checkpointed(plain);
  model->loss(counted_batch({9}), checkpointed).sum.backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_EQ(item.value().grad().defined(), item.key().starts_with("transformer.h.")) << item.key();
  }
}

TEST(Checkpointing, PassesByUnitsThatAreNotTrained) {
  const auto model = small_bloom();
  for (auto& item : model->named_parameters()) {
    item.value().set_requires_grad(item.key().starts_with("transformer.h.2.") || item.key() == "transformer.ln_f.bias");
  }
  UnitRunner plain;
  CheckpointRunner checkpointed(plain);
  model->loss(counted_batch({9}), checkpointed).sum.backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_EQ(item.value().grad().defined(), item.value().requires_grad()) << item.key();
  }
}

TEST(Checkpointing, DoesNothingWithoutGradients) {
  const auto model = small_bloom();
  CountingRunner inner;
  CheckpointRunner checkpointed(inner);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(model->hidden_states(counted_batch({5}), checkpointed).requires_grad());
  EXPECT_EQ(inner.names.size(), 3u);
}

// Backward holds one unit's activations at a time.
TEST(Checkpointing, PeaksAtOneUnitsActivations) {
  start_counting_cpu_memory();
  const auto model = small_bloom(0, 8);
  const PackedBatch batch = counted_batch({100, 150, 50});
  UnitRunner plain;
  CheckpointRunner checkpointed(plain);
  const auto peak_of = [&](UnitRunner& runner) {
    gradients_of(*model, batch, runner);  // allocates the gradients
    reset_peak_cpu_bytes();
    const std::int64_t before = live_cpu_bytes();
    gradients_of(*model, batch, runner);
    return peak_cpu_bytes() - before;
  };
  const std::int64_t saved = peak_of(plain) - peak_of(checkpointed);
  // The activations of 7 of 8 units need not exist together. About one unit's worth is lost again: without
  // checkpointing the peak is at the head's loss, with it in a unit's backward, which recomputes the GELU.
  EXPECT_GT(saved, 5 * bytes_kept_by_unit(*model, 300));
}

}  // namespace
}  // namespace tessera
