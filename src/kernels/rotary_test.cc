#include "kernels/rotary.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

TEST(Rotary, EqualsThePlainOne) {
  for (const auto& one : rotary_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) check_rotary(one, type, at::kCPU);
  }
}

TEST(Rotary, RotatesHalvesAndLeavesTheRest) {
  // A quarter turn takes (a, b) to (-b, a).
  const RotaryTable quarter{at::zeros({1, 2}), at::ones({1, 2})};
  const auto x = at::tensor({1.0f, 2.0f, 3.0f, 4.0f, 5.0f}).view({1, 1, 5});
  EXPECT_TRUE(at::equal(rotary(x, quarter), at::tensor({-3.0f, -4.0f, 1.0f, 2.0f, 5.0f}).view({1, 1, 5})));
}

TEST(Rotary, RefusesWhatDoesNotFitTogether) {
  const auto x = at::zeros({3, 2, 8});
  const auto with = [&](const at::Tensor& cos, const at::Tensor& sin) { rotary(x, {cos, sin}); };
  EXPECT_NO_THROW(with(at::ones({3, 4}), at::ones({3, 4})));
  EXPECT_THROW(with(at::ones({2, 4}), at::ones({2, 4})), Error) << "a token too few";
  EXPECT_THROW(with(at::ones({3, 5}), at::ones({3, 5})), Error) << "more than the head";
  EXPECT_THROW(with(at::ones({3, 4}), at::ones({3, 3})), Error) << "not alike";
  EXPECT_THROW(with(at::ones({3, 4}, at::kHalf), at::ones({3, 4}, at::kHalf)), Error) << "rounded";
  EXPECT_THROW(with(at::ones({4, 3}).t(), at::ones({4, 3}).t()), Error) << "strided";
  EXPECT_THROW(with({}, {}), Error) << "none";
  EXPECT_THROW(rotary(at::zeros({3, 8}), {at::ones({3, 4}), at::ones({3, 4})}), Error) << "no heads";
}

}  // namespace
}  // namespace tessera::kernels
