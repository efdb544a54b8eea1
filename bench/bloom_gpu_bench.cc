// BLOOM-560M with random weights on a GPU in bf16: forward + backward of 16 packed sequences of SQuAD's lengths, and
// greedy generation. Prints times, tokens per second and memory. Needs a GPU: run by `./x gpu-test`.
#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "comm/gpu_support.h"
#include "core/error.h"
#include "model/families/bloom.h"
#include "model/generation.h"
#include "model/parameters.h"
#include "model/run_modes.h"
#include "squad_like.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kAnswerTokens = 5;
constexpr int kWarmups = 5, kRounds = 20;

constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);

// Median time of kRounds calls in milliseconds. Waits for the GPU after each call.
double timed(const std::function<void()>& action) {
  std::vector<double> times;
  for (int i = 0; i < kWarmups + kRounds; ++i) {
    gpu_support()->synchronize();
    const auto start = Clock::now();
    action();
    gpu_support()->synchronize();
    if (i >= kWarmups) times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

void report(const char* what, double ms, std::int64_t num_tokens, double flop) {
  const auto stats = at::accelerator::getDeviceStats(0);
  fmt::print("{:<44} {:8.2f} ms {:10.0f} tokens/s {:7.1f} TFLOP/s  peak {:6.2f} GiB\n", what, ms,
             static_cast<double>(num_tokens) / ms * 1e3, flop / ms * 1e-9,
             static_cast<double>(stats.allocated_bytes[kAll].peak) / (1 << 30));
}

void train(LanguageModel& model, const char* what, const PackedBatch& batch, UnitRunner& runner) {
  at::accelerator::resetPeakStats(0);
  const auto step = [&] {
    const kernels::LossSum loss = model.loss(batch, runner);
    (loss.sum / static_cast<double>(loss.num_counted)).backward();
  };
  const double ms = timed(step);
  const std::int64_t T = batch.input_ids.numel(), C = model.shape().hidden_size;
  // Forward costs 2 x weights, backward twice that; the head only where a label counts. Attention is left out.
  const double blocks = 12.0 * static_cast<double>(C * C * model.shape().num_layers * T);
  const double head = static_cast<double>(C * model.vocab_size() * batch.num_counted);
  report(what, ms, T, 6 * (blocks + head));
}

void generate_greedily(LanguageModel& model, const std::vector<TokenIds>& prompts, std::int64_t num_new) {
  UnitRunner runner;
  GenerationOptions options;
  options.max_new_tokens = num_new;
  at::accelerator::resetPeakStats(0);
  const double ms = timed([&] { generate(model, prompts, options, runner); });
  const auto count = static_cast<std::int64_t>(prompts.size()) * num_new;
  report(fmt::format("generate {} prompts x {} new tokens", prompts.size(), num_new).c_str(), ms, count, 0);
}

int run() {
  if (gpu_support() == nullptr) throw Error("bloom_gpu_bench needs a GPU: " + no_gpu_reason());
  gpu_support()->set_device(0);
  const at::Device device(at::kCUDA, 0);
  BloomConfig config;
  config.hidden_size = 1024;
  config.num_layers = 24;
  config.num_heads = 16;
  const auto made = make_language_model(config.to_json(), "the benchmark", at::device(device).dtype(at::kBFloat16));
  LanguageModel& model = *made;
  initialise(model, 1);
  std::int64_t numel = 0;
  for (const at::Tensor& parameter : model.parameters()) numel += parameter.numel();
  const std::vector<TokenIds> rows = squad_like_sequences(config.vocab_size);
  const PackedBatch answers = training_batch(rows, kAnswerTokens, device),
                    whole = training_batch(rows, 1 << 20, device);
  fmt::print("BLOOM-560M ({} parameters), bf16, {} sequences, {} tokens, on {}\n", numel, rows.size(),
             answers.input_ids.numel(), gpu_support()->info(0).name);
  UnitRunner plain;
  CheckpointRunner checkpointed(plain);
  model.train();
  {
    const at::NoGradGuard no_grad;
    const double ms = timed([&] { model.loss(answers, plain); });
    report("forward alone, loss on answers", ms, answers.input_ids.numel(), 0);
  }
  train(model, "forward + backward, loss on answers", answers, plain);
  train(model, "forward + backward, loss on every token", whole, plain);
  train(model, "the same with activation checkpointing", whole, checkpointed);
  generate_greedily(model, rows, 50);
  return 0;
}

}  // namespace
}  // namespace tessera

int main() {
  try {
    return tessera::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bloom_gpu_bench: {}\n", error.what());
    return 1;
  }
}
