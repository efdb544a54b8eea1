#include "kernels/kernel_checks.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "kernels/bias_gelu.h"
#include "kernels/layer_norm.h"

namespace tessera::kernels {

at::Tensor double_leaf(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble).clone().requires_grad_(true);
}

void expect_near(const at::Tensor& value, const at::Tensor& reference, double most, const char* what) {
  ASSERT_EQ(value.sizes(), reference.sizes()) << what;
  EXPECT_LE(difference(value, reference), most) << what;
}

double difference(const at::Tensor& value, const at::Tensor& reference) {
  if (reference.numel() == 0) return 0;
  const auto a = value.detach().to(at::kCPU, at::kDouble), b = reference.detach().to(at::kCPU, at::kDouble);
  const double largest = std::max(0.1, b.abs().max().item<double>());
  const double apart = (a - b).abs().max().item<double>();
  return std::isnan(apart) ? INFINITY : apart / largest;
}

double tolerance(at::ScalarType type) {
  if (type == at::kFloat) return 4e-5;
  return type == at::kHalf ? 4e-3 : 3e-2;
}

at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, at::Device device, std::uint64_t seed,
                         double deviation) {
  const auto generator = at::detail::createCPUGenerator(seed);
  return (at::randn(sizes, generator, at::kFloat) * deviation).to(type).to(device);
}

const std::vector<RowsCase>& rows_cases() {
  static const std::vector<RowsCase> cases = {{{1, 1}},     {{3, 7}},     {{5, 64}},   {{2, 3, 33}}, {{0, 16}},
                                              {{17, 1000}}, {{130, 257}}, {{2, 4096}}, {{64}},       {{300, 12}}};
  return cases;
}

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  return bias_gelu_linear(x, bias, at::eye(bias.size(0), bias.options()), at::zeros_like(bias));
}

void check_bias_gelu(const RowsCase& rows, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(c10::toString(type));
  const std::int64_t C = rows.sizes.back();
  const auto x = random_tensor(rows.sizes, type, device, 1, 3.0).requires_grad_(true);
  const auto bias = random_tensor({C}, type, device, 2).requires_grad_(true);
  const auto grad = random_tensor(rows.sizes, type, device, 3);
  const auto out = bias_gelu(x, bias);
  out.backward(grad);
  const auto rx = double_leaf(x), rbias = double_leaf(bias);
  const auto y = rx + rbias;
  const auto reference = y * 0.5 * (1 + at::tanh(0.79788456 * y * (1 + 0.044715 * y * y)));
  reference.backward(grad.to(at::kCPU, at::kDouble));
  expect_near(out, reference, tolerance(type), "output");
  expect_near(x.grad(), rx.grad(), tolerance(type), "gradient of x");
  expect_near(bias.grad(), rbias.grad(), tolerance(type), "gradient of the bias");
}

void check_bias_gelu_linear(const RowsCase& rows, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(c10::toString(type));
  const std::int64_t C = rows.sizes.back(), K = 24;
  const auto leaf = [&](at::IntArrayRef sizes, std::uint64_t seed) {
    return random_tensor(sizes, type, device, seed).requires_grad_(true);
  };
  const auto x = leaf(rows.sizes, 1), bias = leaf({C}, 2), weight = leaf({K, C}, 3), out_bias = leaf({K}, 4);
  const auto run = [&](const auto& compute) {
    const at::Tensor out = compute();
    out.backward(random_tensor(out.sizes(), type, device, 5));
    std::vector<at::Tensor> results = {out.detach()};
    for (const at::Tensor* tensor : {&x, &bias, &weight, &out_bias}) {
      results.push_back(tensor->grad());
      tensor->mutable_grad().reset();
    }
    return results;
  };
  const auto fused = run([&] { return bias_gelu_linear(x, bias, weight, out_bias); });
  const auto apart = run([&] { return at::linear(bias_gelu(x, bias), weight, out_bias); });
  for (std::size_t i = 0; i < fused.size(); ++i) {
    expect_near(fused[i], apart[i].to(at::kCPU, at::kDouble), tolerance(type) / 4, "result");
  }
  const auto frozen = weight.detach();
  bias_gelu_linear(x, bias, frozen, out_bias).sum().backward();
  EXPECT_FALSE(frozen.grad().defined());
}

void check_layer_norm(const RowsCase& rows, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(c10::toString(type));
  const std::int64_t C = rows.sizes.back();
  const auto x = random_tensor(rows.sizes, type, device, 1, 3.0).requires_grad_(true);
  const auto residual = random_tensor(rows.sizes, type, device, 2, 2.0).requires_grad_(true);
  const auto weight = random_tensor({C}, type, device, 3).requires_grad_(true);
  const auto bias = random_tensor({C}, type, device, 4).requires_grad_(true);
  const auto grad = random_tensor(rows.sizes, type, device, 5), grad_sum = random_tensor(rows.sizes, type, device, 6);
  const auto rx = double_leaf(x), rresidual = double_leaf(residual), rw = double_leaf(weight), rb = double_leaf(bias);
  const auto [sum, normed] = residual_layer_norm(x, residual, weight, bias, 1e-5);
  torch::autograd::backward({sum, normed}, {grad_sum, grad});
  const auto rsum = rx + rresidual;
  // The norm takes the sum as its type holds it: rounded; the gradient passes through.
  const auto rounded = rsum + (rsum.detach().to(type).to(at::kDouble) - rsum.detach());
  const auto reference = at::layer_norm(rounded, {C}, rw, rb, 1e-5);
  torch::autograd::backward({rsum, reference}, {grad_sum.to(at::kCPU, at::kDouble), grad.to(at::kCPU, at::kDouble)});
  expect_near(sum, rsum, tolerance(type), "sum");
  expect_near(normed, reference, tolerance(type), "output");
  expect_near(x.grad(), rx.grad(), tolerance(type), "gradient of x");
  expect_near(residual.grad(), rresidual.grad(), tolerance(type), "gradient of the residual");
  expect_near(weight.grad(), rw.grad(), tolerance(type), "gradient of the weight");
  expect_near(bias.grad(), rb.grad(), tolerance(type), "gradient of the bias");

  const auto alone = double_leaf(sum);
  const auto leaf = sum.detach().clone().requires_grad_(true);
  const auto out = layer_norm(leaf, weight.detach(), bias.detach(), 1e-5);
  out.backward(grad);
  const auto alone_reference = at::layer_norm(alone, {C}, rw.detach(), rb.detach(), 1e-5);
  alone_reference.backward(grad.to(at::kCPU, at::kDouble));
  expect_near(out, alone_reference, tolerance(type), "output of the norm alone");
  expect_near(leaf.grad(), alone.grad(), tolerance(type), "gradient of the norm alone");
}

}  // namespace tessera::kernels
