#include "kernels/layer_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

TEST(LayerNorm, EqualsThePlainOneAloneAndAfterAResidual) {
  for (const auto& rows : rows_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) check_layer_norm(rows, type, at::kCPU);
  }
}

TEST(LayerNorm, HoldsFarFromZero) {
  const auto x = random_tensor({4, 100}, at::kFloat, at::kCPU, 1) + 1000.0;
  const auto one = at::ones({100}), zero = at::zeros({100});
  const auto reference = at::layer_norm(x.to(at::kDouble), {100}, one.to(at::kDouble), zero.to(at::kDouble), 1e-5);
  EXPECT_LE(difference(layer_norm(x, one, zero, 1e-5), reference), 1e-4);
  EXPECT_LE(difference(residual_layer_norm(x, at::zeros_like(x), one, zero, 1e-5).second, reference), 1e-4);
}

TEST(LayerNorm, RefusesWhatDoesNotFitTogether) {
  const auto x = at::zeros({2, 3});
  EXPECT_THROW(layer_norm(x, at::ones({2}), at::ones({3}), 1e-5), Error);
  EXPECT_THROW(layer_norm(x, at::ones({3}), at::ones({4}), 1e-5), Error);
  EXPECT_THROW(residual_layer_norm(x, at::zeros({3, 2}), at::ones({3}), at::ones({3}), 1e-5), Error);
}

}  // namespace
}  // namespace tessera::kernels
