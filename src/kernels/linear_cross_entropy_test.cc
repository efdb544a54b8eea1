#include "kernels/linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

TEST(LinearCrossEntropy, EqualsPlainLogitsAndCrossEntropy) {
  for (const auto& head : head_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) check_linear_cross_entropy(head, type, at::kCPU);
  }
}

TEST(LinearCrossEntropy, TheChunkSizeChangesNothingButRounding) {
  const auto hidden = random_tensor({40, 16}, at::kFloat, at::kCPU, 1);
  const auto weight = random_tensor({50, 16}, at::kFloat, at::kCPU, 2);
  const auto targets = at::arange(40, at::kLong);
  const auto whole = linear_cross_entropy(hidden, weight, {}, targets).sum.item<double>();
  for (const std::int64_t rows : {1, 3, 39, 40, 1000}) {
    LinearCrossEntropy how;
    how.chunk_rows = rows;
    EXPECT_NEAR(linear_cross_entropy(hidden, weight, {}, targets, how).sum.item<double>(), whole, 1e-5 * whole) << rows;
  }
}

TEST(LinearCrossEntropy, GivesItsGradientsOnce) {
  const auto hidden = random_tensor({4, 8}, at::kFloat, at::kCPU, 1).requires_grad_(true);
  const auto loss =
      linear_cross_entropy(hidden, random_tensor({5, 8}, at::kFloat, at::kCPU, 2), {}, at::ones({4}, at::kLong));
  loss.sum.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.sum.backward(), Error);
}

TEST(LinearCrossEntropy, RefusesTargetsThatAreNoClass) {
  const auto hidden = at::zeros({3, 8}), weight = at::zeros({5, 8});
  const auto with = [&](std::int64_t target) {
    linear_cross_entropy(hidden, weight, {}, at::tensor({std::int64_t{0}, target, std::int64_t{-100}}, at::kLong));
  };
  EXPECT_NO_THROW(with(4));
  EXPECT_NO_THROW(with(-100));
  EXPECT_THROW(with(5), Error);
  EXPECT_THROW(with(-1), Error);
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFitTogether) {
  const auto targets = at::zeros({3}, at::kLong);
  EXPECT_THROW(linear_cross_entropy(at::zeros({3, 8}), at::zeros({5, 7}), {}, targets), Error);
  EXPECT_THROW(linear_cross_entropy(at::zeros({3, 8}), at::zeros({5, 8}, at::kHalf), {}, targets), Error);
  EXPECT_THROW(linear_cross_entropy(at::zeros({3, 8}), at::zeros({5, 8}), at::zeros({4}), targets), Error);
  EXPECT_THROW(linear_cross_entropy(at::zeros({2, 8}), at::zeros({5, 8}), {}, targets), Error);
  LinearCrossEntropy how;
  how.label_smoothing = 1.5;
  EXPECT_THROW(linear_cross_entropy(at::zeros({3, 8}), at::zeros({5, 8}), {}, targets, how), Error);
}

}  // namespace
}  // namespace tessera::kernels
