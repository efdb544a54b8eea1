#include "kernels/linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>

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

// Counts the bytes that tensors hold, and the largest single buffer.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    auto* begin = static_cast<char*>(::operator new(n + kHeader, std::align_val_t(kHeader)));
    *reinterpret_cast<std::size_t*>(begin) = n;
    held += n;
    peak = std::max(peak, held);
    largest = std::max(largest, n);
    return {begin + kHeader, begin + kHeader, &CountingAllocator::release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::release; }
  void copy_data(void* to, const void* from, std::size_t n) const override { std::memcpy(to, from, n); }

  static inline std::size_t held = 0, peak = 0, largest = 0;

 private:
  static constexpr std::size_t kHeader = 64;  // before the data: its size in bytes
  static void release(void* data) {
    char* begin = static_cast<char*>(data) - kHeader;
    held -= *reinterpret_cast<std::size_t*>(begin);
    ::operator delete(begin, std::align_val_t(kHeader));
  }
};

TEST(LinearCrossEntropy, HoldsNothingLargerThanAChunkBesideTheGradients) {
  const std::int64_t T = 300, V = 5'000, rows = 20;
  const int num_threads = at::get_num_threads();
  at::set_num_threads(1);  // oneDNN allocates workspace per thread, on x86-64 more than a chunk
  for (const std::int64_t C : {16, 64}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(fmt::format("C {} {}", C, c10::toString(type)));
      const auto hidden = random_tensor({T, C}, type, at::kCPU, 1).requires_grad_(true);
      const auto weight = random_tensor({V, C}, type, at::kCPU, 2).requires_grad_(true);
      const auto bias = random_tensor({V}, type, at::kCPU, 3).requires_grad_(true);
      const auto targets = at::arange(T, at::kLong);
      const std::size_t size = hidden.element_size();
      const std::size_t chunk = static_cast<std::size_t>(rows * V) * size;
      const std::size_t weight_bytes = static_cast<std::size_t>(V * C) * size;
      const std::size_t gradients = weight_bytes + static_cast<std::size_t>(T * C + V) * size;
      LinearCrossEntropy how;
      how.chunk_rows = rows;
      static CountingAllocator counter;  // outlives what it allocates
      c10::Allocator* usual = c10::GetAllocator(at::kCPU);
      c10::SetAllocator(at::kCPU, &counter, /*priority=*/1);
      const std::size_t before = counter.held;
      counter.peak = before;
      counter.largest = 0;
      linear_cross_entropy(hidden, weight, bias, targets, how).sum.backward();
      c10::SetAllocator(at::kCPU, usual, 1);
      const std::size_t peak = counter.peak - before;
      const std::size_t small = 64 << 10;  // indices, masks, one chunk's inputs, its sum over rows
      // For half types oneDNN reorders as much data as a chunk holds.
      const std::size_t reordered = type == at::kFloat ? 0 : chunk;
      EXPECT_LE(counter.largest, std::max(chunk, weight_bytes)) << "the largest buffer";
      EXPECT_LE(peak, gradients + chunk + reordered + small) << "the peak";
      EXPECT_GE(peak, gradients + chunk) << "the counter counts";
    }
  }
  at::set_num_threads(num_threads);
}

// Knowing the counted rows and that the scale is exact saves work, and changes no bit.
TEST(LinearCrossEntropy, WhatTheCallerKnowsChangesNothing) {
  const auto weight = random_tensor({50, 16}, at::kFloat, at::kCPU, 2);
  auto targets = at::arange(12, at::kLong);
  targets[3] = targets[7] = -100;
  const auto run = [&](const LinearCrossEntropy& how) {
    const auto hidden = random_tensor({12, 16}, at::kFloat, at::kCPU, 1).requires_grad_(true);
    const auto loss = linear_cross_entropy(hidden, weight, {}, targets, how);
    (loss.sum * 0.25).backward();
    EXPECT_EQ(loss.num_counted, 10);
    return std::pair(loss.sum.detach(), hidden.grad());
  };
  const auto [sum, gradient] = run({.gradient_scale = 0.25});
  LinearCrossEntropy knowing{.gradient_scale = 0.25, .scale_is_exact = true};
  knowing.counted = (targets != -100).nonzero().squeeze(1);
  const auto [same_sum, same_gradient] = run(knowing);
  EXPECT_TRUE(at::equal(sum, same_sum));
  EXPECT_TRUE(at::equal(gradient, same_gradient));
  knowing.counted = knowing.counted.to(at::kInt);
  EXPECT_THROW(run(knowing), Error);
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
