// AdamW, Adam, SGD and Lion against torch.optim's steps (tools/references/kernel_cases.py) or the published formula,
// and what shards and types must not change.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/flat_buffers.h"
#include "kernels/kernel_checks.h"
#include "kernels/optimizers/optimizer_slice.h"

namespace tessera::kernels {
namespace {

TEST(Optimizers, EqualTorchOptimOverSeveralSteps) {
  check_optimizers(TESSERA_TEST_DATA_FOLDER "/kernels/optimizers.json", at::kCPU);
}

TEST(Optimizers, LionIsItsPublishedFormula) {
  check_lion(at::kCPU);
}

TEST(Optimizers, MastersInHalvesGetTheBitsOfWholeOnes) {
  check_masters_in_halves(at::kCPU);
}

TEST(FlatParts, ArePutLikeOneByOne) {
  check_put_parts(at::kCPU);
  const at::Tensor flat = at::zeros({10});
  EXPECT_THROW(put_parts(flat, {{at::zeros({4}), 7, false}}), Error);
}

// A slice with everything that an update reads, from one seed.
OptimizerSlice random_slice(std::int64_t n, std::size_t num_states, at::ScalarType grad_type,
                            std::optional<at::ScalarType> copy_type) {
  OptimizerSlice slice{random_tensor({n}, at::kFloat, at::kCPU, 1), random_tensor({n}, grad_type, at::kCPU, 2)};
  for (std::size_t i = 0; i < num_states; ++i) {
    slice.states.push_back(random_tensor({n}, at::kFloat, at::kCPU, 3 + i).square());
  }
  if (copy_type) slice.copy = at::zeros({n}, *copy_type);
  return slice;
}

OptimizerSlice shard(const OptimizerSlice& whole, std::int64_t begin, std::int64_t n) {
  const auto part = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, begin, n) : x; };
  OptimizerSlice slice{part(whole.params), part(whole.grads), {}, part(whole.copy)};
  for (const at::Tensor& state : whole.states) slice.states.push_back(part(state));
  return slice;
}

TEST(Optimizers, ShardsGetTheBitsOfTheWhole) {
  const std::vector<std::int64_t> lengths = {1, 2, 3, 5, 17, 1000, 33'333, 1, 65'641};
  const std::int64_t n = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const OptimizerNumbers numbers{.weight_decay = 0.1, .momentum = 0.9};
  const UpdateNumbers update{.learning_rate = 1e-3, .gradient_scale = 0.37, .step = 3};
  for (const OptimizerKind* kind : optimizers()) {
    const std::size_t num_states = kind->states(numbers).size();
    for (const auto grad_type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const auto copy_type : {at::kBFloat16, at::kHalf}) {
        SCOPED_TRACE(kind->name);
        const auto whole = random_slice(n, num_states, grad_type, copy_type);
        const auto split = random_slice(n, num_states, grad_type, copy_type);
        kind->update(whole, numbers, update);
        std::int64_t begin = 0;
        for (const std::int64_t length : lengths) {
          kind->update(shard(split, begin, length), numbers, update);
          begin += length;
        }
        EXPECT_TRUE(at::equal(whole.params, split.params));
        for (std::size_t i = 0; i < num_states; ++i) EXPECT_TRUE(at::equal(whole.states[i], split.states[i]));
        EXPECT_TRUE(at::equal(whole.copy, split.copy));
        EXPECT_FALSE(at::equal(whole.params, random_slice(n, num_states, grad_type, copy_type).params));
      }
    }
  }
}

TEST(Optimizers, TheCopyIsTheParameterRoundedAsTorchRounds) {
  for (const OptimizerKind* kind : optimizers()) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
      const auto slice = random_slice(5'000, kind->states({}).size(), at::kFloat, type);
      kind->update(slice, {}, {.learning_rate = 0.1});
      EXPECT_TRUE(at::equal(slice.copy, slice.params.to(type))) << kind->name;
    }
  }
}

TEST(Optimizers, TheCopyKeepsWhatIsNotFinite) {
  for (const OptimizerKind* kind : optimizers()) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
      const auto slice = random_slice(40, kind->states({}).size(), at::kFloat, type);
      slice.params.mutable_data_ptr<float>()[3] = NAN;
      slice.params.mutable_data_ptr<float>()[7] = INFINITY;
      slice.params.mutable_data_ptr<float>()[39] = -INFINITY;
      kind->update(slice, {}, {.learning_rate = 1e-3});
      EXPECT_TRUE(std::isnan(slice.copy[3].item<float>())) << kind->name;
      EXPECT_EQ(slice.copy[7].item<float>(), INFINITY) << kind->name;
      EXPECT_EQ(slice.copy[39].item<float>(), -INFINITY) << kind->name;
    }
  }
}

TEST(Optimizers, MastersInHalvesKeepWhatIsNotFinite) {
  for (const OptimizerKind* kind : optimizers()) {
    auto slice = random_slice(40, kind->states({}).size(), at::kFloat, at::kBFloat16);
    slice.copy.copy_(slice.params);
    slice.remainder = remainder_of(std::exchange(slice.params, {}), slice.copy);
    slice.copy[3] = NAN;
    slice.copy[7] = INFINITY;
    slice.remainder[7] = 0;
    kind->update(slice, {}, {.learning_rate = 1e-3});
    const at::Tensor joined = SplitFloats{slice.copy, slice.remainder}.joined();
    EXPECT_TRUE(std::isnan(joined[3].item<float>())) << kind->name;
    EXPECT_EQ(joined[7].item<float>(), INFINITY) << kind->name;
    EXPECT_TRUE(std::isfinite(joined[4].item<float>())) << kind->name;
  }
}

TEST(Optimizers, TheGradientScaleIsAFactorOfTheGradient) {
  for (const OptimizerKind* kind : optimizers()) {
    const std::size_t num_states = kind->states({}).size();
    const auto one = random_slice(1'000, num_states, at::kFloat, {}),
               other = random_slice(1'000, num_states, at::kFloat, {});
    kind->update(one, {}, {.learning_rate = 1e-3, .gradient_scale = 0.25});
    other.grads.mul_(0.25);
    kind->update(other, {}, {.learning_rate = 1e-3});
    EXPECT_TRUE(at::equal(one.params, other.params)) << kind->name;
  }
}

TEST(Optimizers, RefuseASliceThatDoesNotFit) {
  const OptimizerKind& adamw = optimizer_of("adamw");
  const auto with = [&](const std::function<void(OptimizerSlice&)>& spoil, std::int64_t step = 1) {
    auto slice = random_slice(8, 2, at::kFloat, at::kBFloat16);
    spoil(slice);
    adamw.update(slice, {}, {.step = step});
  };
  EXPECT_NO_THROW(with([](OptimizerSlice&) {}));
  EXPECT_THROW(with([](OptimizerSlice& s) { s.grads = at::zeros({7}); }), Error);
  EXPECT_THROW(with([](OptimizerSlice& s) { s.states[0] = at::Tensor(); }), Error);
  EXPECT_THROW(with([](OptimizerSlice& s) { s.states.pop_back(); }), Error);
  EXPECT_THROW(with([](OptimizerSlice& s) { s.params = s.params.to(at::kDouble); }), Error);
  EXPECT_THROW(with([](OptimizerSlice& s) { s.copy = at::zeros({8}); }), Error);
  EXPECT_THROW(with([](OptimizerSlice& s) { s.params = at::zeros({16}).slice(0, 0, 16, 2); }), Error);
  EXPECT_THROW(with([](OptimizerSlice& s) { s.remainder = at::zeros({8}, at::kShort); }), Error);  // beside params
  EXPECT_THROW(with([](OptimizerSlice&) {}, 0), Error);
}

TEST(Optimizers, RefuseNumbersOutOfTheirRange) {
  EXPECT_THROW(optimizer_of("adamw").check({.beta2 = 1.0}), UsageError);
  EXPECT_THROW(optimizer_of("lion_32bit").check({.beta1 = -0.1}), UsageError);
  EXPECT_THROW(optimizer_of("sgd").check({.nesterov = true}), UsageError);
  EXPECT_THROW(optimizer_of("sgd").check({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), UsageError);
  EXPECT_NO_THROW(optimizer_of("sgd").check({.momentum = 0.9, .nesterov = true}));
}

TEST(Optimizers, AreKnownByTheWordsOfUsers) {
  EXPECT_EQ(&optimizer_of("adamw_hf"), &optimizer_of("adamw"));
  EXPECT_NE(&optimizer_of("adam"), &optimizer_of("adamw"));
  try {
    optimizer_of("lion_32bits");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'lion_32bit'?"), std::string::npos) << error.what();
  }
}

TEST(Sgd, TheFirstStepDoesNotReadTheMomentum) {
  const auto params = at::ones({5}), grads = at::ones({5});
  optimizer_of("sgd").update({params, grads, {at::full({5}, NAN)}}, {.momentum = 0.9}, {.learning_rate = 0.5});
  EXPECT_TRUE(at::equal(params, at::full({5}, 0.5f)));
}

TEST(Sgd, KeepsNothingWithoutMomentum) {
  EXPECT_TRUE(optimizer_of("sgd").states({}).empty());
  const auto x = at::zeros({5});
  EXPECT_THROW(optimizer_of("sgd").update({x, x}, {.momentum = 0.9}, {}), Error) << "no momentum buffer";
}

TEST(Norm, BlocksOfShardsAreTheBlocksOfTheWhole) {
  const std::int64_t n = 5 * kNormBlock + 37;
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto values = random_tensor({n}, type, at::kCPU, 1);
    const auto sums = block_square_sums(values);
    ASSERT_EQ(sums.numel(), 6);
    const auto first = block_square_sums(values.narrow(0, 0, 2 * kNormBlock));
    const auto rest = block_square_sums(values.narrow(0, 2 * kNormBlock, n - 2 * kNormBlock));
    EXPECT_TRUE(at::equal(sums, at::cat({first, rest})));
    const double exact = values.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(sums.sum().item<double>(), exact, 1e-12 * exact);
  }
}

TEST(Norm, IsNotFiniteWhereAValueIsNot) {
  for (const float bad : {NAN, INFINITY}) {
    auto values = at::zeros({3 * kNormBlock});
    values.mutable_data_ptr<float>()[2 * kNormBlock + 1] = bad;
    EXPECT_FALSE(std::isfinite(block_square_sums(values).sum().item<double>()));
  }
  EXPECT_EQ(block_square_sums(at::zeros({0})).sum().item<double>(), 0.0);
}

TEST(Norm, LargeNumbersDoNotOverflow) {
  EXPECT_DOUBLE_EQ(block_square_sums(at::full({4}, 1e30f)).sum().item<double>(),
                   4.0 * std::pow(static_cast<double>(1e30f), 2));
}

}  // namespace
}  // namespace tessera::kernels
