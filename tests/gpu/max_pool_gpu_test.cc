// The pooling of a ResNet's stem on a GPU against libtorch's on the CPU.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "comm/gpu_support.h"
#include "kernels/image_ops.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

struct Outcome {
  at::Tensor out, grad_x;
};

Outcome outcome_of(const at::Tensor& x, const at::Tensor& grad) {
  const at::Tensor leaf = x.detach().requires_grad_();
  const at::Tensor out = max_pool(leaf);
  out.backward(grad);
  return {out.detach(), leaf.grad()};
}

class MaxPoolOnGpu : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(gpu_support(), nullptr) << no_gpu_reason(); }
};

TEST_F(MaxPoolOnGpu, EqualsLibtorchsAlsoWhereValuesAreEqualOrNotNumbers) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {1, 8, 1, 1}, {2, 64, 1, 9}, {3, 16, 7, 6}, {2, 24, 33, 70}, {5, 64, 112, 112}};
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const auto& sizes : shapes) {
      SCOPED_TRACE(fmt::format("{} [{}]", c10::toString(type), fmt::join(sizes, ", ")));
      // Few values, so that many are equal.
      at::Tensor x = random_tensor(sizes, at::kFloat, at::kCPU, 1, 3).round_().to(type);
      x = x.contiguous(at::MemoryFormat::ChannelsLast);
      x.select(1, 0).fill_(-std::numeric_limits<double>::infinity());
      x.select(1, 1).select(2, 0).fill_(std::numeric_limits<double>::quiet_NaN());
      const at::Tensor grad = random_tensor(at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1}).sizes(), type, at::kCPU, 2);
      const at::Device gpu(at::kCUDA, 0);
      ASSERT_TRUE(max_pool_serves(x.to(gpu)));
      ASSERT_FALSE(max_pool_serves(x));
      // In float32 on the CPU: a value's gradient is a sum of at most four, which is then rounded once.
      const Outcome there = outcome_of(x.to(gpu), grad.to(gpu)),
                    here = outcome_of(x.to(at::kFloat), grad.to(at::kFloat));
      EXPECT_TRUE(there.out.is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(there.out.cpu().allclose(here.out.to(type), 0, 0, /*equal_nan=*/true));
      EXPECT_TRUE(at::equal(there.grad_x.cpu(), here.grad_x.to(type)));
    }
  }
}

TEST_F(MaxPoolOnGpu, LeavesOtherLayoutsToLibtorch) {
  const at::Tensor x = random_tensor({2, 8, 9, 9}, at::kHalf, at::Device(at::kCUDA, 0), 1);
  EXPECT_FALSE(max_pool_serves(x));
  EXPECT_TRUE(at::equal(max_pool(x), max_pool(x.contiguous(at::MemoryFormat::ChannelsLast))));
}

}  // namespace
}  // namespace tessera::kernels
