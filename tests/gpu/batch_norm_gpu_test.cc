// The fused batch norm against libtorch's separate operations: both against float64.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <vector>

#include "comm/gpu_support.h"
#include "kernels/image_ops.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

struct Inputs {
  at::Tensor x, residual, weight, bias, running_mean, running_var, grad;

  Inputs(at::IntArrayRef sizes, at::ScalarType type, at::Device device) {
    const auto image = [&](std::uint64_t seed) {
      return random_tensor(sizes, type, device, seed).contiguous(at::MemoryFormat::ChannelsLast);
    };
    const auto channels = [&](std::uint64_t seed, double mean) {
      return random_tensor({sizes[1]}, at::kFloat, device, seed, 0.2) + mean;
    };
    x = (image(1) * 2 + channels(2, 3).to(type).view({1, -1, 1, 1})).detach().requires_grad_();
    residual = image(3).requires_grad_();
    weight = channels(4, 1).requires_grad_();
    bias = channels(5, 0).requires_grad_();
    running_mean = channels(6, 0);
    running_var = channels(7, 1).abs();
    grad = image(8);
  }
  Inputs exact() const {
    Inputs result = *this;
    for (auto member : {&Inputs::x, &Inputs::residual, &Inputs::weight, &Inputs::bias}) {
      result.*member = double_leaf(this->*member);
    }
    for (auto member : {&Inputs::running_mean, &Inputs::running_var, &Inputs::grad}) {
      result.*member = (this->*member).to(at::kCPU, at::kDouble, false, /*copy=*/true);
    }
    return result;
  }
  BatchNorm norm() const { return {weight, bias, running_mean, running_var, kMomentum, kEpsilon}; }
};

at::Tensor fused(const Inputs& in, BatchNormThen then) {
  return batch_norm(in.x, in.norm(), then, then == BatchNormThen::kAddRelu ? std::optional(in.residual) : std::nullopt);
}

at::Tensor by_operations(const Inputs& in, BatchNormThen then) {
  auto out = at::batch_norm(in.x, in.weight, in.bias, in.running_mean, in.running_var, true, kMomentum, kEpsilon, true);
  if (then == BatchNormThen::kAddRelu) out = out + in.residual;
  return then == BatchNormThen::kNothing ? out : out.relu();
}

// The result, the gradients, the statistics.
std::vector<at::Tensor> outcome(const Inputs& in, at::Tensor (*compute)(const Inputs&, BatchNormThen),
                                BatchNormThen then) {
  for (const auto* leaf : {&in.x, &in.residual, &in.weight, &in.bias}) leaf->mutable_grad().reset();
  const at::Tensor out = compute(in, then);
  out.backward(in.grad);
  std::vector<at::Tensor> all = {out.detach(),   in.x.grad(),     in.weight.grad(),
                                 in.bias.grad(), in.running_mean, in.running_var};
  if (then == BatchNormThen::kAddRelu) all.push_back(in.residual.grad());
  return all;
}

// As exact as its operations, and the same bits again.
void expect_exact(const std::vector<std::vector<std::int64_t>>& shapes) {
  const at::Device gpu(at::kCUDA, 0);
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const auto& sizes : shapes) {
      for (const auto then : {BatchNormThen::kNothing, BatchNormThen::kRelu, BatchNormThen::kAddRelu}) {
        SCOPED_TRACE(
            fmt::format("{} [{}] then {}", c10::toString(type), fmt::join(sizes, ", "), static_cast<int>(then)));
        const Inputs ours(sizes, type, gpu), again(sizes, type, gpu), theirs(sizes, type, gpu), exact = ours.exact();
        ASSERT_TRUE(batch_norm_serves(ours.x));
        const auto got = outcome(ours, fused, then), repeated = outcome(again, fused, then);
        const auto separate = outcome(theirs, by_operations, then), right = outcome(exact, by_operations, then);
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(at::equal(got[i], repeated[i])) << "at " << i;
          // A ReLU's gradient at a rounding's distance from 0 is all or nothing: both may differ there.
          const auto error = [&](const at::Tensor& value) {
            const auto wrong = (value.to(at::kCPU, at::kDouble) - right[i]).norm().item<double>();
            return wrong / (right[i].norm().item<double>() + 1e-12);
          };
          EXPECT_LE(error(got[i]), 1.2 * error(separate[i]) + 1e-5) << "at " << i;
        }
      }
    }
  }
}

class BatchNormOnGpu : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(gpu_support(), nullptr) << no_gpu_reason(); }
};

TEST_F(BatchNormOnGpu, IsAsExactAsItsOperations) {
  expect_exact({{64, 256, 14, 14}, {9, 2048, 7, 7}});
}

// Small enough for compute-sanitizer.
TEST_F(BatchNormOnGpu, IsAsExactAsItsOperationsForAFewPictures) {
  expect_exact({{2, 8, 1, 1}, {3, 64, 5, 7}});
}

TEST_F(BatchNormOnGpu, LeavesStatisticsAloneIfThereAreNone) {
  const Inputs in({4, 64, 6, 6}, at::kHalf, at::Device(at::kCUDA, 0));
  BatchNorm norm = in.norm();
  norm.running_mean.reset();
  norm.running_var.reset();
  EXPECT_TRUE(at::equal(batch_norm(in.x, norm, BatchNormThen::kRelu), fused(in, BatchNormThen::kRelu)));
}

TEST_F(BatchNormOnGpu, ServesHalfTypesInChannelsLastAlone) {
  const auto options = at::dtype(at::kHalf).device(at::kCUDA);
  const auto image = [&](std::int64_t C) {
    return at::zeros({2, C, 4, 4}, options).contiguous(at::MemoryFormat::ChannelsLast);
  };
  EXPECT_TRUE(batch_norm_serves(image(2048)));
  EXPECT_FALSE(batch_norm_serves(image(24)));    // threads would meet other channels
  EXPECT_FALSE(batch_norm_serves(image(4096)));  // more than a block's threads have
  EXPECT_FALSE(batch_norm_serves(image(64).to(at::kFloat)));
  EXPECT_FALSE(batch_norm_serves(at::zeros({2, 64, 4, 4}, options)));
  EXPECT_THROW(batch_norm(at::zeros({2, 64, 4, 4}, options), {}, BatchNormThen::kNothing), std::exception);
}

}  // namespace
}  // namespace tessera::kernels
