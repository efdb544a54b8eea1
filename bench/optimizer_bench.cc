// The CPU's fused AdamW against a plain copy: bytes that pass through memory in a second, turn by turn in one run.
//
// A copy of n bytes reads n and writes n. AdamW reads the parameter, its gradient and two moments and writes three of
// them, and the half-type copy: 4 + g + 8 bytes read and 12 + c written a number.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/adamw.h"
#include "kernels/norm.h"
#include "kernels/parallel.h"

namespace {

using namespace tessera::kernels;

constexpr std::int64_t kNumel = std::int64_t{8} << 20;  // 32 MiB a buffer: beyond any cache, 160 MiB in all
constexpr int kTurns = 12;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Row {
  std::string name;
  double bytes;  // that pass through memory
  std::function<void()> work;
  double best = 1e30;
};

void copy_in_parallel(const at::Tensor& from, const at::Tensor& to) {
  const auto* source = from.const_data_ptr<float>();
  auto* target = to.mutable_data_ptr<float>();
  parallel_for(0, from.numel(), 32768, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

AdamWBuffers buffers(at::ScalarType grad_type, std::optional<at::ScalarType> copy_type) {
  AdamWBuffers result{
      at::randn({kNumel}), at::randn({kNumel}).to(grad_type), at::zeros({kNumel}), at::zeros({kNumel}), {}};
  if (copy_type) result.copy = at::zeros({kNumel}, *copy_type);
  return result;
}

Row adamw_row(const std::string& name, at::ScalarType grad_type, std::optional<at::ScalarType> copy_type) {
  const double bytes = 24.0 + static_cast<double>(c10::elementSize(grad_type)) +
                       (copy_type ? static_cast<double>(c10::elementSize(*copy_type)) : 0.0);
  const auto own = buffers(grad_type, copy_type);
  return {name, bytes * static_cast<double>(kNumel), [own, step = std::int64_t{0}]() mutable {
            adamw_step(own, {.learning_rate = 1e-4, .weight_decay = 0.01}, ++step);
          }};
}

}  // namespace

int main() {
  const auto from = at::randn({kNumel}), to = at::zeros({kNumel});
  std::vector<Row> rows;
  rows.push_back({"copy", 8.0 * static_cast<double>(kNumel), [&] { copy_in_parallel(from, to); }});
  rows.push_back(adamw_row("AdamW", at::kFloat, {}));
  rows.push_back(adamw_row("AdamW with the bf16 copy", at::kFloat, at::kBFloat16));
  rows.push_back(adamw_row("AdamW with the fp16 copy", at::kFloat, at::kHalf));
  rows.push_back(adamw_row("AdamW, bf16 gradients, bf16 copy", at::kBFloat16, at::kBFloat16));
  rows.push_back(adamw_row("AdamW, fp16 gradients, fp16 copy", at::kHalf, at::kHalf));
  rows.push_back({"sums of squares", 4.0 * static_cast<double>(kNumel), [&] { block_square_sums(from); }});
  for (int turn = 0; turn < kTurns; ++turn) {
    for (auto& row : rows) row.best = std::min(row.best, seconds(row.work));
  }
  const double copy = rows[0].bytes / rows[0].best;
  fmt::print("{} million numbers, {} threads, the best of {} turns\n", kNumel >> 20, at::get_num_threads(), kTurns);
  for (const auto& row : rows) {
    fmt::print("{:36} {:8.2f} ms {:7.2f} GB/s {:5.2f} of the copy\n", row.name, row.best * 1e3,
               row.bytes / row.best / 1e9, row.bytes / row.best / copy);
  }
#if defined(__aarch64__)
  const double least = 0.6;
#else
  const double least = 0.7;
#endif
  bool met = true;
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
    const double share = rows[i].bytes / rows[i].best / copy;
    met = met && share >= least;
    fmt::print("mark: {}, share of a copy's bandwidth: {:.2f} (at least {}): {}\n", rows[i].name, share, least,
               share >= least ? "met" : "missed");
  }
  return met ? 0 : 3;
}
