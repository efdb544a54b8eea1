#include "kernels/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

constexpr RmsWeight kWays[] = {RmsWeight::kAfterRounding, RmsWeight::kBeforeRounding, RmsWeight::kOnePlus};

TEST(RmsNorm, EqualsThePlainOneAloneAndAfterAResidual) {
  for (const auto& rows : rows_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const RmsWeight how : kWays) check_rms_norm(rows, how, type, at::kCPU);
    }
  }
}

TEST(RmsNorm, OfHeadsOfAProjectionEqualsThePlainOne) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const RmsWeight how : kWays) check_rms_norm_of_heads(how, type, at::kCPU);
  }
}

TEST(RmsNorm, OfARowOfZerosIsZero) {
  const auto x = at::zeros({2, 5}).requires_grad_(true);
  const auto out = rms_norm(x, at::ones({5}), 1e-6, RmsWeight::kAfterRounding);
  EXPECT_TRUE(at::equal(out, at::zeros({2, 5})));
  out.sum().backward();
  EXPECT_NEAR(x.grad()[1][2].item<double>(), 1e3, 1e-2);  // 1 / sqrt(eps)
}

TEST(RmsNorm, OfSoManyRowsThatTasksShareThemEqualsThePlainOne) {
  check_rms_norm({{9000, 40}}, RmsWeight::kAfterRounding, at::kFloat, at::kCPU);
}

TEST(RmsNorm, TheNumberOfThreadsChangesNoBit) {
  // Six tasks, each with sums of its own for the weight.
  const auto x = random_tensor({9000, 40}, at::kFloat, at::kCPU, 1),
             grad = random_tensor({9000, 40}, at::kFloat, at::kCPU, 2);
  const auto weight = random_tensor({40}, at::kFloat, at::kCPU, 3).requires_grad_(true);
  const int num_threads = at::get_num_threads();
  const auto gradient = [&](int threads) {
    at::set_num_threads(threads);
    weight.mutable_grad().reset();
    rms_norm(x, weight, 1e-6, RmsWeight::kOnePlus).backward(grad);
    return weight.grad();
  };
  const auto one = gradient(1), three = gradient(3);
  at::set_num_threads(num_threads);
  EXPECT_TRUE(at::equal(one, three));
}

TEST(RmsNorm, PassesTheGradientOfTheSumAlone) {
  const auto x = random_tensor({3, 4}, at::kFloat, at::kCPU, 1).requires_grad_(true), grad = at::ones({3, 4});
  residual_rms_norm(x, at::ones({3, 4}), at::ones({4}), 1e-6, RmsWeight::kOnePlus).first.backward(grad);
  EXPECT_TRUE(at::equal(x.grad(), grad));
}

TEST(RmsNorm, RefusesWhatDoesNotFitTogether) {
  const auto x = at::zeros({2, 3});
  EXPECT_THROW(rms_norm(x, at::ones({2}), 1e-5, RmsWeight::kOnePlus), Error);
  EXPECT_THROW(rms_norm(x, at::ones({3}, at::kHalf), 1e-5, RmsWeight::kOnePlus), Error);
  EXPECT_THROW(rms_norm(x.to(at::kDouble), at::ones({3}, at::kDouble), 1e-5, RmsWeight::kOnePlus), Error);
  EXPECT_THROW(residual_rms_norm(x, at::zeros({3, 2}), at::ones({3}), 1e-5, RmsWeight::kOnePlus), Error);
}

}  // namespace
}  // namespace tessera::kernels
