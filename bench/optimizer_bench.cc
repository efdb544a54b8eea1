// The CPU's fused AdamW against a plain copy: memory traffic in bytes per second, alternating in one run.
//
// A copy of n bytes reads n and writes n. AdamW reads the parameter, its gradient and two moments, and writes the
// parameter, the moments and the half-type copy: per number, 4 + g + 8 bytes read and 12 + c written.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/flat_buffers.h"
#include "kernels/optimizers/optimizer_slice.h"
#include "kernels/parallel.h"

namespace {

using namespace tessera;
using namespace tessera::kernels;

// Each turn takes the next slice of buffers too large for any cache, about 32 MB of memory traffic: short compared with
// a time slice of the system, so that nothing interrupts the best turn.
constexpr std::int64_t kNumel = std::int64_t{16} << 20;
constexpr std::int64_t kSlice = std::int64_t{1} << 20;
constexpr std::int64_t kCopySlice = 4 * kSlice;
constexpr int kTurns = 160;

struct Row {
  std::string name;
  double bytes;  // memory traffic per turn
  std::function<void(std::int64_t turn)> work;
  double numbers = static_cast<double>(kSlice);  // per turn
  double best = 1e30;

  double bandwidth() const { return bytes / best; }
  void take(std::int64_t turn) {
    const auto begin = std::chrono::steady_clock::now();
    work(turn);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
};

void copy_in_parallel(const float* source, float* target) {
  parallel_for(0, kCopySlice, 32768, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

at::Tensor part_of(const at::Tensor& whole, std::int64_t turn) {
  return whole.narrow(0, turn % (kNumel / kSlice) * kSlice, kSlice);
}

Row adamw_row(const std::string& name, const at::Tensor& grads, std::optional<at::ScalarType> copy_type) {
  const double bytes = 24.0 + static_cast<double>(grads.element_size()) +
                       (copy_type ? static_cast<double>(c10::elementSize(*copy_type)) : 0.0);
  OptimizerSlice own{at::randn({kNumel}), grads, {at::zeros({kNumel}), at::zeros({kNumel})}};
  if (copy_type) own.copy = at::zeros({kNumel}, *copy_type);
  return {name, bytes * static_cast<double>(kSlice), [own](std::int64_t turn) {
            OptimizerSlice part{part_of(own.params, turn),
                                part_of(own.grads, turn),
                                {part_of(own.states[0], turn), part_of(own.states[1], turn)}};
            if (own.copy.defined()) part.copy = part_of(own.copy, turn);
            optimizer_of("adamw").update(part, {.weight_decay = 0.01}, {.learning_rate = 1e-4, .step = turn + 1});
          }};
}

// As an offloaded update of a run on a GPU has it (flat_buffers.h).
Row halves_row(const at::Tensor& grads) {
  OptimizerSlice own{{}, grads, {at::zeros({kNumel}), at::zeros({kNumel})}};
  own.copy = at::randn({kNumel}).to(at::kBFloat16);
  own.remainder = at::zeros({kNumel}, at::kShort);
  return {"AdamW, bf16 gradients, masters in halves", 26.0 * static_cast<double>(kSlice), [own](std::int64_t turn) {
            OptimizerSlice part{{},
                                part_of(own.grads, turn),
                                {part_of(own.states[0], turn), part_of(own.states[1], turn)},
                                part_of(own.copy, turn),
                                part_of(own.remainder, turn)};
            optimizer_of("adamw").update(part, {.weight_decay = 0.01}, {.learning_rate = 1e-4, .step = turn + 1});
          }};
}

}  // namespace

int main() {
  const auto from = at::randn({kNumel}), to = at::zeros({kNumel});
  const auto grads = at::randn({kNumel}), bf16_grads = grads.to(at::kBFloat16), fp16_grads = grads.to(at::kHalf);
  std::vector<Row> rows;
  rows.push_back({"copy", 8.0 * static_cast<double>(kCopySlice), [&](std::int64_t turn) {
                    const std::int64_t at = turn % (kNumel / kCopySlice) * kCopySlice;
                    copy_in_parallel(from.const_data_ptr<float>() + at, to.mutable_data_ptr<float>() + at);
                  }});
  rows.back().numbers = static_cast<double>(kCopySlice);
  rows.push_back(adamw_row("AdamW", grads, {}));
  rows.push_back(adamw_row("AdamW with the bf16 copy", grads, at::kBFloat16));
  rows.push_back(adamw_row("AdamW with the fp16 copy", grads, at::kHalf));
  rows.push_back(adamw_row("AdamW, bf16 gradients, bf16 copy", bf16_grads, at::kBFloat16));
  rows.push_back(adamw_row("AdamW, fp16 gradients, fp16 copy", fp16_grads, at::kHalf));
  rows.push_back(halves_row(bf16_grads));
  rows.push_back({"sums of squares", 4.0 * static_cast<double>(kSlice),
                  [&](std::int64_t turn) { block_square_sums(part_of(grads, turn)); }});
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
    for (auto& row : rows) row.take(turn);
  }
  const double copy = rows[0].bandwidth();
  fmt::print("slices of {} million numbers, {} threads, the best of {} turns\n", kSlice >> 20, at::get_num_threads(),
             kTurns);
  for (const auto& row : rows) {
    fmt::print("{:40} {:7.2f} GB/s {:5.2f} of the copy, {:6.2f} billion numbers/s\n", row.name, row.bandwidth() / 1e9,
               row.bandwidth() / copy, row.numbers / row.best / 1e9);
  }
#if defined(__aarch64__)
  const double least = 0.6;
#else
  const double least = 0.7;
#endif
  bool met = true;
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
    const double share = rows[i].bandwidth() / copy;
    met = met && share >= least;
    fmt::print("mark: {}, share of a copy's bandwidth: {:.2f} (at least {}): {}\n", rows[i].name, share, least,
               share >= least ? "met" : "missed");
  }
  return met ? 0 : 3;
}
