#include "kernels/bias_gelu.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "kernels/kernel_checks.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

TEST(BiasGelu, EqualsThePlainOne) {
  for (const auto& rows : rows_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) check_bias_gelu(rows, type, at::kCPU);
  }
}

TEST(BiasGeluLinear, EqualsItsParts) {
  for (const auto& rows : rows_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) check_bias_gelu_linear(rows, type, at::kCPU);
  }
  EXPECT_THROW(bias_gelu_linear(at::ones({2, 3}), at::ones({3}), at::ones({5, 4}), at::ones({5})), Error);
}

TEST(BiasGelu, EqualsTheActivationOfTransformersBloom) {
  std::ifstream file(TESSERA_TEST_DATA_FOLDER "/kernels/bloom_gelu.json");
  const auto json = nlohmann::json::parse(file);
  const auto numbers = [&](const char* name) {
    return at::tensor(json.at(name).get<std::vector<double>>(), at::kDouble).to(at::kFloat);
  };
  const auto x = numbers("x").requires_grad_(true);
  const auto out = bias_gelu(x, at::zeros_like(x));
  out.backward(numbers("upstream"));
  EXPECT_LE(difference(out, numbers("y")), 1e-6);
  EXPECT_LE(difference(x.grad(), numbers("gradient")), 1e-6);
}

TEST(BiasGelu, IsRightAtTheEndsOfTheRange) {
  const auto x = at::tensor({-1e30f, -50.0f, -10.0f, -5.5f, 0.0f, 5.5f, 50.0f, 1e30f}).requires_grad_(true);
  const auto out = bias_gelu(x, at::zeros({8}));
  const auto plain = [](double y) { return y * 0.5 * (1 + std::tanh(0.79788456 * y * (1 + 0.044715 * y * y))); };
  for (std::int64_t i = 1; i < 7; ++i) {
    EXPECT_NEAR(out[i].item<double>(), plain(x[i].item<double>()),
                1e-6 * std::max(1.0, std::abs(plain(x[i].item<double>()))));
  }
  EXPECT_NEAR(out[0].item<float>(), 0.0f, 1e-6);
  EXPECT_EQ(out[7].item<float>(), 1e30f);
  out.sum().backward();
  EXPECT_TRUE(at::isfinite(x.grad().narrow(0, 1, 6)).all().item<bool>());
}

TEST(BiasGelu, KeepsNaN) {
  const auto out = bias_gelu(at::full({1, 4}, NAN), at::zeros({4}));
  EXPECT_TRUE(at::isnan(out).all().item<bool>());
}

TEST(BiasGelu, TakesStridedInput) {
  const auto x = random_tensor({6, 5}, at::kFloat, at::kCPU, 1);
  const auto bias = random_tensor({6}, at::kFloat, at::kCPU, 2);
  EXPECT_TRUE(at::equal(bias_gelu(x.t(), bias), bias_gelu(x.t().contiguous(), bias)));
}

TEST(BiasGelu, RefusesABiasOfAnotherSize) {
  EXPECT_THROW(bias_gelu(at::zeros({2, 3}), at::zeros({2})), Error);
  EXPECT_THROW(bias_gelu(at::zeros({2, 3}), at::zeros({3}, at::kHalf)), Error);
  EXPECT_THROW(bias_gelu(at::zeros({2, 3}, at::kDouble), at::zeros({3}, at::kDouble)), Error);
}

TEST(VectorMath, ExponentialIsWithinTwoRoundings) {
  double worst = 0;
  for (float x = -87.2f; x < 88.0f; x += 0.00137f) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exp_of(x)) - exact) / exact);
  }
  EXPECT_LT(worst, 2 * 1.2e-7);
  EXPECT_EQ(exp_of(-INFINITY), 0.0f);
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(exp_of(NAN)));
}

}  // namespace
}  // namespace tessera::kernels
