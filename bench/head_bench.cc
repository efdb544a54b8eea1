// One forward and backward pass of the head with its loss: `head_bench (chunked|plain) ROWS CLASSES WIDTH (fp32|bf16)
// COUNTED`. Prints seconds, the peak bytes of its tensors beyond inputs and gradients, and the loss.
//
// plain: logits of all rows, then cross-entropy, with libtorch's own operators. COUNTED: the share of rows whose target
// counts; the plain variant computes the other rows' logits too.
#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <string>

#include "kernels/linear_cross_entropy.h"

namespace {

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    auto* begin = static_cast<char*>(::operator new(n + kHeader, std::align_val_t(kHeader)));
    *reinterpret_cast<std::size_t*>(begin) = n;
    held += n;
    peak = std::max(peak, held);
    return {begin + kHeader, begin + kHeader, &CountingAllocator::release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::release; }
  void copy_data(void* to, const void* from, std::size_t n) const override { std::memcpy(to, from, n); }

  static inline std::size_t held = 0, peak = 0;

 private:
  static constexpr std::size_t kHeader = 64;
  static void release(void* data) {
    char* begin = static_cast<char*>(data) - kHeader;
    held -= *reinterpret_cast<std::size_t*>(begin);
    ::operator delete(begin, std::align_val_t(kHeader));
  }
};

at::Tensor plain_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
  const auto logits = at::linear(hidden, weight);
  return at::cross_entropy_loss(logits.to(at::kFloat), targets, {}, at::Reduction::Sum, -100);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "usage: head_bench (chunked|plain) ROWS CLASSES WIDTH (fp32|bf16) COUNTED\n");
    return 2;
  }
  const bool chunked = std::string(argv[1]) == "chunked";
  const std::int64_t rows = std::stoll(argv[2]), classes = std::stoll(argv[3]), width = std::stoll(argv[4]);
  const auto type = std::string(argv[5]) == "bf16" ? at::kBFloat16 : at::kFloat;
  const auto num_counted = static_cast<std::int64_t>(std::stod(argv[6]) * static_cast<double>(rows));
  static CountingAllocator counter;
  c10::SetAllocator(at::kCPU, &counter, /*priority=*/1);

  at::manual_seed(1);
  const auto hidden = at::randn({rows, width}).to(type).requires_grad_(true);
  const auto weight = (at::randn({classes, width}) * 0.02).to(type).requires_grad_(true);
  auto targets = at::randint(classes, {rows}, at::kLong);
  targets.narrow(0, 0, rows - num_counted).fill_(-100);
  double seconds = 1e30, loss = 0;
  std::size_t beyond = 0;
  for (int turn = 0; turn < 2; ++turn) {  // the first warms up
    hidden.mutable_grad() = at::Tensor();
    weight.mutable_grad() = at::Tensor();
    const std::size_t before = counter.held;
    counter.peak = before;
    const auto begin = std::chrono::steady_clock::now();
    const auto sum = chunked ? tessera::kernels::linear_cross_entropy(hidden, weight, {}, targets).sum
                             : plain_loss(hidden, weight, targets);
    sum.backward();
    seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    loss = sum.item<double>() / static_cast<double>(std::max<std::int64_t>(1, num_counted));
    const std::size_t gradients = static_cast<std::size_t>((rows + classes) * width) * hidden.element_size();
    beyond = counter.peak - before - std::min(counter.peak - before, gradients);
  }
  fmt::print("{:.4f} {} {:.6f}\n", seconds, beyond, loss);
  return 0;
}
