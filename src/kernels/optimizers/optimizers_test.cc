// AdamW, Adam and SGD against torch.optim's steps (tools/references/kernels.py), and what sharding and types must not
// change.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/error.h"
#include "kernels/adamw.h"
#include "kernels/flat_parts.h"
#include "kernels/kernel_checks.h"
#include "kernels/norm.h"
#include "kernels/sgd.h"

namespace tessera::kernels {
namespace {

TEST(Optimizers, EqualTorchOptimOverSeveralSteps) {
  check_optimizers(TESSERA_TEST_DATA_FOLDER "/kernels/optimizers.json", at::kCPU);
}

TEST(FlatParts, ArePutLikeOneByOne) {
  check_put_parts(at::kCPU);
  const at::Tensor flat = at::zeros({10});
  EXPECT_THROW(put_parts(flat, {{at::zeros({4}), 7, false}}), Error);
}

// Buffers with everything a step reads, from one seed.
AdamWBuffers random_buffers(std::int64_t n, at::ScalarType grad_type, std::optional<at::ScalarType> copy_type) {
  AdamWBuffers buffers{random_tensor({n}, at::kFloat, at::kCPU, 1),
                       random_tensor({n}, grad_type, at::kCPU, 2),
                       random_tensor({n}, at::kFloat, at::kCPU, 3),
                       random_tensor({n}, at::kFloat, at::kCPU, 4).square(),
                       {}};
  if (copy_type) buffers.copy = at::zeros({n}, *copy_type);
  return buffers;
}

AdamWBuffers shard(const AdamWBuffers& whole, std::int64_t begin, std::int64_t n) {
  const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, n); };
  AdamWBuffers buffers{part(whole.params), part(whole.grads), part(whole.mean), part(whole.square_mean), {}};
  if (whole.copy) buffers.copy = part(*whole.copy);
  return buffers;
}

TEST(AdamW, ShardsGetTheBitsOfTheWhole) {
  const std::int64_t n = 100'003;
  for (const auto grad_type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const auto copy_type : {at::kBFloat16, at::kHalf}) {
      for (const bool decoupled : {true, false}) {
        const AdamW how{.weight_decay = 0.1, .decoupled = decoupled, .gradient_scale = 0.37};
        const auto whole = random_buffers(n, grad_type, copy_type), split = random_buffers(n, grad_type, copy_type);
        adamw_step(whole, how, 3);
        std::int64_t begin = 0;
        for (const std::int64_t length : {1, 2, 3, 5, 17, 1000, 33'333, 1, 65'641}) {
          adamw_step(shard(split, begin, length), how, 3);
          begin += length;
        }
        ASSERT_EQ(begin, n);
        EXPECT_TRUE(at::equal(whole.params, split.params));
        EXPECT_TRUE(at::equal(whole.mean, split.mean));
        EXPECT_TRUE(at::equal(whole.square_mean, split.square_mean));
        EXPECT_TRUE(at::equal(*whole.copy, *split.copy));
      }
    }
  }
}

TEST(AdamW, TheCopyIsTheParameterRoundedAsTorchRounds) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto buffers = random_buffers(5'000, at::kFloat, type);
    adamw_step(buffers, {.learning_rate = 0.1}, 1);
    EXPECT_TRUE(at::equal(*buffers.copy, buffers.params.to(type)));
    EXPECT_GT((buffers.params - random_buffers(5'000, at::kFloat, {}).params).abs().max().item<float>(), 0.01);
  }
}

TEST(AdamW, TheCopyKeepsWhatIsNotFinite) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    auto buffers = random_buffers(40, at::kFloat, type);
    buffers.params.mutable_data_ptr<float>()[3] = NAN;
    buffers.params.mutable_data_ptr<float>()[7] = INFINITY;
    buffers.params.mutable_data_ptr<float>()[39] = -INFINITY;
    adamw_step(buffers, {.learning_rate = 1e-3}, 1);
    EXPECT_TRUE(std::isnan((*buffers.copy)[3].item<float>()));
    EXPECT_EQ((*buffers.copy)[7].item<float>(), INFINITY);
    EXPECT_EQ((*buffers.copy)[39].item<float>(), -INFINITY);
  }
}

TEST(AdamW, TheGradientScaleIsAFactorOfTheGradient) {
  const auto one = random_buffers(1'000, at::kFloat, {}), other = random_buffers(1'000, at::kFloat, {});
  adamw_step(one, {.gradient_scale = 0.25}, 1);
  other.grads.mul_(0.25);
  adamw_step(other, {}, 1);
  EXPECT_TRUE(at::equal(one.params, other.params));
}

TEST(AdamW, RefusesWhatDoesNotFitTogether) {
  const auto with = [](const std::function<void(AdamWBuffers&)>& spoil, std::int64_t step = 1, AdamW how = {}) {
    auto buffers = random_buffers(8, at::kFloat, at::kBFloat16);
    spoil(buffers);
    adamw_step(buffers, how, step);
  };
  EXPECT_NO_THROW(with([](AdamWBuffers&) {}));
  EXPECT_THROW(with([](AdamWBuffers& b) { b.grads = at::zeros({7}); }), Error);
  EXPECT_THROW(with([](AdamWBuffers& b) { b.mean = at::Tensor(); }), Error);
  EXPECT_THROW(with([](AdamWBuffers& b) { b.params = b.params.to(at::kDouble); }), Error);
  EXPECT_THROW(with([](AdamWBuffers& b) { b.copy = at::zeros({8}); }), Error);
  EXPECT_THROW(with([](AdamWBuffers& b) { b.params = at::zeros({16}).slice(0, 0, 16, 2); }), Error);
  EXPECT_THROW(with([](AdamWBuffers&) {}, 0), Error);
  EXPECT_THROW(with([](AdamWBuffers&) {}, 1, {.beta2 = 1.0}), Error);
}

TEST(Sgd, ShardsGetTheBitsOfTheWhole) {
  const std::int64_t n = 10'007;
  for (const auto grad_type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const bool nesterov : {false, true}) {
      const Sgd how{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov};
      const auto run = [&](const std::vector<std::int64_t>& lengths) {
        SgdBuffers whole{random_tensor({n}, at::kFloat, at::kCPU, 1), random_tensor({n}, grad_type, at::kCPU, 2),
                         random_tensor({n}, at::kFloat, at::kCPU, 3), at::zeros({n}, at::kHalf)};
        std::int64_t begin = 0;
        for (const auto length : lengths) {
          const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, length); };
          sgd_step({part(whole.params), part(whole.grads), part(*whole.momentum), part(*whole.copy)}, how, 2);
          begin += length;
        }
        EXPECT_EQ(begin, n);
        return whole;
      };
      const auto whole = run({n}), split = run({1, 6, 4'000, 3, 5'997});
      EXPECT_TRUE(at::equal(whole.params, split.params));
      EXPECT_TRUE(at::equal(*whole.momentum, *split.momentum));
      EXPECT_TRUE(at::equal(*whole.copy, whole.params.to(at::kHalf)));
    }
  }
}

TEST(Sgd, TheFirstStepDoesNotReadTheMomentum) {
  const auto params = at::ones({5}), grads = at::ones({5});
  sgd_step({params, grads, at::full({5}, NAN), {}}, {.learning_rate = 0.5, .momentum = 0.9}, 1);
  EXPECT_TRUE(at::equal(params, at::full({5}, 0.5f)));
}

TEST(Sgd, RefusesWhatTorchRefuses) {
  const auto x = at::zeros({5});
  EXPECT_THROW(sgd_step({x, x, {}, {}}, {.momentum = 0.9}, 1), Error) << "no momentum buffer";
  EXPECT_THROW(sgd_step({x, x, x, {}}, {.nesterov = true}, 1), Error);
  EXPECT_THROW(sgd_step({x, x, x, {}}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}, 1), Error);
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
    EXPECT_NEAR(add_in_order(sums), exact, 1e-12 * exact);
  }
}

TEST(Norm, IsNotFiniteWhereAValueIsNot) {
  for (const float bad : {NAN, INFINITY}) {
    auto values = at::zeros({3 * kNormBlock});
    values.mutable_data_ptr<float>()[2 * kNormBlock + 1] = bad;
    EXPECT_FALSE(std::isfinite(add_in_order(block_square_sums(values))));
  }
  EXPECT_EQ(add_in_order(block_square_sums(at::zeros({0}))), 0.0);
}

TEST(Norm, LargeNumbersDoNotOverflow) {
  EXPECT_DOUBLE_EQ(add_in_order(block_square_sums(at::full({4}, 1e30f))),
                   4.0 * std::pow(static_cast<double>(1e30f), 2));
}

}  // namespace
}  // namespace tessera::kernels
