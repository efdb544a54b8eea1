#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/kernel_checks.h"
#include "kernels/linear_cross_entropy.h"

namespace tessera::kernels {

const std::vector<HeadCase>& head_cases() {
  static const std::vector<HeadCase> cases = {
      {"one_row", 1, 4, 3, 1.0, false, 0, 0},           {"odd_sizes", 13, 7, 31, 0.5, false, 0, 3},
      {"bias", 33, 16, 101, 0.7, true, 0, 8},           {"label_smoothing", 20, 16, 77, 0.7, true, 0.1, 7},
      {"full_smoothing", 5, 8, 33, 1.0, false, 1.0, 2}, {"all_ignored", 6, 8, 10, 0.0, true, 0.1, 2},
      {"no_rows", 0, 8, 10, 1.0, true, 0, 0},           {"chunk_chosen", 70, 32, 1000, 1.0, false, 0, 0},
      {"one_class", 3, 4, 1, 1.0, true, 0, 0},          {"many_classes", 9, 16, 20001, 0.8, true, 0.05, 4},
  };
  return cases;
}

void check_linear_cross_entropy(const HeadCase& head, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(head.name + " " + c10::toString(type));
  const auto hidden = random_tensor({head.T, head.C}, type, device, 1).requires_grad_(true);
  const auto weight = random_tensor({head.V, head.C}, type, device, 2, 0.5).requires_grad_(true);
  std::optional<at::Tensor> bias;
  if (head.bias) bias = random_tensor({head.V}, type, device, 3).requires_grad_(true);
  auto targets = random_tensor({head.T}, at::kFloat, at::kCPU, 4, 1e4).abs().to(at::kLong).remainder(head.V);
  const auto draw = random_tensor({head.T}, at::kFloat, at::kCPU, 5).mul(1e3).abs().remainder(1.0);
  targets.masked_fill_(draw >= head.counted_share, -100);
  LinearCrossEntropy how;
  how.label_smoothing = head.label_smoothing;
  how.chunk_rows = head.chunk_rows;
  how.gradient_scale = 4;
  const auto loss = linear_cross_entropy(hidden, weight, bias, targets.to(device), how);
  EXPECT_EQ(loss.num_counted, (targets != -100).sum().item<std::int64_t>());
  EXPECT_EQ(loss.sum.scalar_type(), at::kFloat);
  (loss.sum * 0.5).backward();

  const auto rh = double_leaf(hidden), rw = double_leaf(weight);
  const auto rb = bias ? double_leaf(*bias) : at::Tensor();
  const auto reference =
      at::cross_entropy_loss(at::linear(rh, rw, rb), targets, {}, at::Reduction::Sum, -100, head.label_smoothing);
  (reference * 0.5).backward();
  expect_near(loss.sum, reference, tolerance(type), "loss");
  expect_near(hidden.grad(), rh.grad(), tolerance(type), "gradient of hidden");
  expect_near(weight.grad(), rw.grad(), tolerance(type), "gradient of the weight");
  if (bias) expect_near(bias->grad(), rb.grad(), tolerance(type), "gradient of the bias");

  const at::NoGradGuard no_grad;
  const auto evaluated = linear_cross_entropy(hidden, weight, bias, targets.to(device), how);
  EXPECT_LE(difference(evaluated.sum, loss.sum), 1e-6) << "without gradients";
}

}  // namespace tessera::kernels
