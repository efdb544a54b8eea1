#include "kernels/gated_linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

TEST(GatedLinear, EqualsThePlainOne) {
  for (const auto& one : gated_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      check_gated_linear(one, GateActivation::kSilu, type, at::kCPU);
      check_gated_linear(one, GateActivation::kGelu, type, at::kCPU);
    }
  }
}

TEST(GatedLinear, IsRightAtTheEndsOfTheRange) {
  const auto gate = at::tensor({-1e30f, -50.0f, 0.0f, 50.0f, 1e30f}).view({1, 5}).requires_grad_(true);
  for (const auto activation : {GateActivation::kSilu, GateActivation::kGelu}) {
    gate.mutable_grad().reset();
    const auto out = gated_linear(gate, at::ones({1, 5}), at::eye(5), {}, activation);
    EXPECT_LE(difference(out, at::tensor({0.0f, 0.0f, 0.0f, 50.0f, 1e30f}).view({1, 5})), 1e-6);
    out.sum().backward();
    EXPECT_LE(difference(gate.grad(), at::tensor({0.0f, 0.0f, 0.5f, 1.0f, 1.0f}).view({1, 5})), 1e-6);
  }
}

TEST(GatedLinear, KeepsNaN) {
  const auto out = gated_linear(at::full({1, 4}, NAN), at::ones({1, 4}), at::ones({1, 4}), {}, GateActivation::kSilu);
  EXPECT_TRUE(at::isnan(out).all().item<bool>());
}

TEST(GatedLinear, ComputesOnlyTheGradientsThatAreWanted) {
  const auto leaf = [](at::IntArrayRef sizes, bool wanted) {
    return random_tensor(sizes, at::kFloat, at::kCPU, 1).requires_grad_(wanted);
  };
  for (const bool of_inputs : {true, false}) {
    const auto gate = leaf({6, 5}, of_inputs), up = leaf({6, 5}, of_inputs), weight = leaf({3, 5}, !of_inputs);
    gated_linear(gate, up, weight, {}, GateActivation::kSilu).sum().backward();
    EXPECT_EQ(gate.grad().defined(), of_inputs);
    EXPECT_EQ(weight.grad().defined(), !of_inputs);
    if (of_inputs) continue;
    const auto product = gate * at::sigmoid(gate) * up;
    EXPECT_LE(difference(weight.grad(), product.sum(0).unsqueeze(0).expand({3, 5})), 1e-6);
  }
}

TEST(GatedLinear, RefusesWhatDoesNotFitTogether) {
  const auto gate = at::zeros({2, 3}), weight = at::zeros({4, 3});
  const auto with = [&](const at::Tensor& up, const at::Tensor& own_weight, const at::Tensor& bias) {
    gated_linear(gate, up, own_weight, bias, GateActivation::kSilu);
  };
  EXPECT_NO_THROW(with(gate, weight, at::zeros({4})));
  EXPECT_THROW(with(at::zeros({2, 4}), weight, {}), Error) << "up of another size";
  EXPECT_THROW(with(gate.to(at::kHalf), weight, {}), Error) << "up of another type";
  EXPECT_THROW(with(gate, at::zeros({3, 4}), {}), Error) << "a weight of another size";
  EXPECT_THROW(with(gate, weight, at::zeros({3})), Error) << "a bias of another size";
}

}  // namespace
}  // namespace tessera::kernels
