// What the engine costs: trains BLOOM with the engine and with a plain libtorch loop on the same kernels, alternating.
//
//   engine_bench overhead          one CPU rank, a small BLOOM in float32
//   engine_bench gpu               one GPU, BLOOM-560M in bf16: rows of the table against the plain loop, and
//                                  offloaded rows
//   engine_bench breakdown         what timing the parts of a step costs; on a GPU, if there is one
//
// Prints times and marks (bench/engine_bench.sh). Exit status 3: a mark was missed.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>

#include "comm/gpu_support.h"
#include "core/error.h"
#include "core/host.h"
#include "kernels/flat_buffers.h"
#include "kernels/optimizers/optimizer_slice.h"
#include "model/families/bloom.h"
#include "model/parameters.h"
#include "parallel/sharded_optimizer.h"
#include "squad_like.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLearningRate = 1e-4, kMaxNorm = 1;
constexpr std::uint64_t kSeed = 1;

struct Work {
  BloomConfig config;
  std::vector<PackedBatch> micro_batches;
  at::Device device = at::kCPU;
  at::ScalarType type = at::kFloat;

  double num_counted() const {
    double sum = 0;
    for (const PackedBatch& batch : micro_batches) sum += static_cast<double>(batch.num_counted);
    return sum;
  }
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  virtual double step() = 0;  // the loss
};

// What one writes without an engine: parameters one by one; float32 masters, and float32 sums over micro-steps if the
// model computes in a half type. The same arithmetic as the engine's, so the same losses.
class PlainLoop : public Trainer {
 public:
  explicit PlainLoop(const Work& work)
      : work_(work), model_(make_language_model(work.config.to_json(), "the benchmark", at::device(work.device))) {
    initialise(*model_, kSeed);
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : model_->parameters()) {
      State& state = states_.emplace_back();
      state.parameter = parameter;
      state.master = work.type == at::kFloat ? parameter.detach() : parameter.detach().clone();
      state.mean = at::zeros_like(state.master);
      state.square_mean = at::zeros_like(state.master);
      if (work.type != at::kFloat) state.parameter.set_data(state.master.to(work.type));
    }
    model_->train();
  }

  double step() override {
    at::Tensor loss_sum;
    for (const PackedBatch& batch : work_.micro_batches) {
      const at::Tensor loss = model_->loss(batch, runner_).sum;
      loss.backward();
      if (adds_in_float32()) add_gradients();
      loss_sum = loss_sum.defined() ? loss_sum + loss.detach() : loss.detach();
    }
    update();
    return loss_sum.item<double>() / work_.num_counted();
  }

 private:
  struct State {
    at::Tensor parameter, master, mean, square_mean;
    at::Tensor sum;  // over the micro-steps so far, unless .grad has it

    at::Tensor gradient() const { return sum.defined() ? sum : parameter.grad(); }
  };

  bool adds_in_float32() const { return work_.type != at::kFloat && work_.micro_batches.size() > 1; }

  void add_gradients() {
    const at::NoGradGuard no_gradients;
    for (State& state : states_) {
      at::Tensor& gradient = state.parameter.mutable_grad();
      state.sum = state.sum.defined() ? state.sum.add_(gradient) : gradient.to(at::kFloat);
      gradient.reset();
    }
  }

  void update() {
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> sums;
    for (const State& state : states_) sums.push_back(kernels::block_square_sums(state.gradient().flatten()));
    const double norm = std::sqrt(at::cat(sums).sum().item<double>()) / work_.num_counted();
    const UpdateNumbers update{.learning_rate = kLearningRate,
                               .gradient_scale = std::min(1.0, kMaxNorm / (norm + 1e-6)) / work_.num_counted(),
                               .step = ++num_updates_};
    for (State& state : states_) {
      OptimizerSlice slice{
          state.master.flatten(), state.gradient().flatten(), {state.mean.flatten(), state.square_mean.flatten()}};
      if (work_.type != at::kFloat) slice.copy = state.parameter.detach().flatten();
      optimizer_of("adamw").update(slice, {}, update);
      state.parameter.mutable_grad().reset();
      state.sum.reset();
    }
  }

  const Work& work_;
  std::shared_ptr<LanguageModel> model_;
  UnitRunner runner_;
  std::vector<State> states_;
  std::int64_t num_updates_ = 0;
};

class EngineLoop : public Trainer {
 public:
  // `is_timed`: with the breakdown of its steps, as `tessera train` has it.
  EngineLoop(World& world, const Work& work, const SpreadOptions& spread, bool is_timed = false)
      : work_(work), model_(make_language_model(work.config.to_json(), "the benchmark", at::device(at::kMeta))) {
    EngineOptions options;
    options.spread = spread;
    options.types = {work.type, work.type, work.micro_batches.size() > 1};
    options.device = work.device;
    options.first_values = [this](const std::string& name, at::Tensor values) {
      initialise_parameter(values, name, model_->initial_values(), kSeed);
    };
    engine_ = std::make_unique<Engine>(world, *model_, model_->units(), options);
    optimizer_ = std::make_unique<ShardedOptimizer>(*engine_, choose_optimizer("adamw"));
    model_->train();
    if (is_timed) engine_->clock().begin();
  }

  double step() override {
    at::Tensor loss_sum;
    for (std::size_t i = 0; i < work_.micro_batches.size(); ++i) {
      at::Tensor loss;
      {
        const auto pass = engine_->forward();
        loss = model_->loss(work_.micro_batches[i], *engine_).sum;
      }
      engine_->backward(loss, i + 1 == work_.micro_batches.size());
      loss_sum = loss_sum.defined() ? loss_sum + loss.detach() : loss.detach();
    }
    optimizer_->update({.learning_rate = kLearningRate, .divisor = work_.num_counted(), .max_norm = kMaxNorm});
    if (engine_->placement().optimizer.is_on_host()) engine_->finish_updates();  // else it runs into the other's step
    engine_->clock().end_step();
    return loss_sum.item<double>() / work_.num_counted();
  }

 private:
  const Work& work_;
  std::shared_ptr<LanguageModel> model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
};

double seconds_of(Trainer& trainer) {
  const auto start = Clock::now();
  trainer.step();
  if (gpu_support() != nullptr) gpu_support()->synchronize();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

int status = 0;

void mark(const std::string& what, double value, bool at_least, double limit) {
  const bool is_met = at_least ? value >= limit : value <= limit;
  if (!is_met) status = 3;
  fmt::print("mark: {}: {:.3f} ({} {}): {}\n", what, value, at_least ? "at least" : "at most", limit,
             is_met ? "met" : "missed");
}

// Alternates the two in one run and swaps who goes first, so that other load on the machine hits both alike. The median
// of the per-turn ratios counts. Throws if the two compute different losses: then they are not worth comparing.
double ratio_of(Trainer& ours, Trainer& plain, int num_turns, const std::string& what) {
  // FlashAttention's backward adds in any order unless told to keep one, which costs time: only for comparing losses.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  for (int i = 0; i < 5; ++i) {
    const double our_loss = ours.step(), plain_loss = plain.step();
    if (std::abs(our_loss - plain_loss) < 1e-4 * plain_loss) continue;
    throw Error(fmt::format("{}: step {} has loss {}, the plain loop {}", what, i + 1, our_loss, plain_loss));
  }
  at::globalContext().setDeterministicAlgorithms(false, false);
  std::vector<double> ratios, ours_s, plain_s;
  for (int i = 0; i < num_turns; ++i) {
    if (i % 2 == 0) plain_s.push_back(seconds_of(plain));
    ours_s.push_back(seconds_of(ours));
    if (i % 2 != 0) plain_s.push_back(seconds_of(plain));
    ratios.push_back(ours_s.back() / plain_s.back());
  }
  fmt::print("{:<28} {:9.2f} ms, plain loop {:9.2f} ms (medians of {} steps)\n", what, 1e3 * median(ours_s),
             1e3 * median(plain_s), num_turns);
  return median(ratios);
}

// The cost of timing the parts of each step.
void breakdown(World& world, const Work& work, const SpreadOptions& spread, int num_turns) {
  EngineLoop timed(world, work, spread, /*is_timed=*/true), untimed(world, work, spread);
  mark(fmt::format("time of {}{} with its breakdown, of that without", spread.strategy,
                   spread.offload_parameters ? " offloaded" : ""),
       ratio_of(timed, untimed, num_turns, "with breakdown"), false, 1.01);
}

Work cpu_work() {
  Work work;
  work.config.vocab_size = 8000;
  work.config.hidden_size = 256;
  work.config.num_layers = 8;
  std::vector<TokenIds> rows = squad_like_sequences(work.config.vocab_size);
  rows.resize(4);
  work.micro_batches = {training_batch(rows, 1 << 20, at::kCPU)};
  fmt::print("BLOOM, {} layers of width {}, {} tokens a step, float32, {} threads\n", work.config.num_layers,
             work.config.hidden_size, work.micro_batches[0].input_ids.numel(), at::get_num_threads());
  return work;
}

void overhead(World& world) {
  const Work work = cpu_work();
  for (const char* strategy : {"single", "full_shard"}) {
    PlainLoop plain(work);
    EngineLoop ours(world, work, SpreadOptions{.strategy = strategy});
    mark(fmt::format("engine overhead at one rank, {}", strategy), ratio_of(ours, plain, 50, strategy), false, 1.03);
  }
}

// --- one GPU --------------------------------------------------------------------------------------

struct Row {
  const char* strategy;
  bool offload_optimizer, offload_parameters;
  double deepspeed_samples, deepspeed_gib, least_multiple;  // measured on that machine, batch 4 x 4 padded to 512
};

double peak_gib() {
  constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);
  return static_cast<double>(at::accelerator::getDeviceStats(0).allocated_bytes[kAll].peak) / (1 << 30);
}

constexpr std::size_t kBatch = 4, kAccumulation = 4;

Work gpu_work(const std::vector<TokenIds>& rows) {
  if (gpu_support() == nullptr) throw Error("engine_bench gpu needs a GPU: " + no_gpu_reason());
  gpu_support()->set_device(0);
  Work work;
  work.config.hidden_size = 1024;
  work.config.num_layers = 24;
  work.config.num_heads = 16;
  work.device = at::Device(at::kCUDA, 0);
  work.type = at::kBFloat16;
  for (std::size_t i = 0; i < kAccumulation; ++i) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(i * kBatch);
    work.micro_batches.push_back(training_batch({begin, begin + kBatch}, 1 << 20, work.device));
  }
  fmt::print("BLOOM-560M, bf16, batch {} x accumulation {}, {}\n", kBatch, kAccumulation, gpu_support()->info(0).name);
  return work;
}

void gpu(World& world) {
  const std::vector<TokenIds> rows = squad_like_sequences(BloomConfig().vocab_size);
  const Work work = gpu_work(rows);
  {
    EngineLoop single(world, work, SpreadOptions{.strategy = "single"}),
        full_shard(world, work, SpreadOptions{.strategy = "full_shard"});
    mark("speed of full_shard at one rank, of single's", 1 / ratio_of(full_shard, single, 60, "full_shard"), true,
         0.95);
  }
  {
    PlainLoop plain(work);
    EngineLoop single(world, work, SpreadOptions{.strategy = "single"});
    mark("engine overhead at one rank, single", ratio_of(single, plain, 60, "single"), false, 1.03);
  }
  // The default of `tessera train`: the micro-batches of an update are one pass.
  Work merged = work;
  merged.micro_batches = {training_batch(rows, 1 << 20, work.device)};
  for (const Row& row : {Row{"zero2", true, false, 16.7, 11.4, 3}, Row{"zero3", true, true, 9.1, 11.8, 5}}) {
    const std::string name =
        fmt::format("{} with {} offloaded", row.strategy, row.offload_parameters ? "all" : "the optimizer");
    const auto samples_of = [&](const Work& what, const char* how, bool delayed_update = false) {
      at::accelerator::resetPeakStats(0);
      EngineLoop ours(world, what,
                      SpreadOptions{.strategy = row.strategy,
                                    .offload_optimizer = row.offload_optimizer,
                                    .offload_parameters = row.offload_parameters,
                                    .delayed_update = delayed_update});
      for (int i = 0; i < 3; ++i) ours.step();
      std::vector<double> seconds;
      for (int i = 0; i < 15; ++i) seconds.push_back(seconds_of(ours));
      const double samples = kBatch * kAccumulation / median(seconds);
      fmt::print("{}, {}: {:.2f} ms per step, {:.1f} samples/s, peak {:.2f} GiB\n", name, how, 1e3 * median(seconds),
                 samples, peak_gib());
      return samples;
    };
    samples_of(work, "micro-batches one by one");
    samples_of(merged, "in one pass, updates delayed", /*delayed_update=*/true);
    const double samples = samples_of(merged, "in one pass");
    mark("speed of " + name + ", in multiples of DeepSpeed's " + fmt::format("{}", row.deepspeed_samples),
         samples / row.deepspeed_samples, true, row.least_multiple);
    mark("memory of " + name + ", GiB", peak_gib(), false, row.deepspeed_gib);
  }
}

void breakdowns(World& world) {
  if (gpu_support() == nullptr) return breakdown(world, cpu_work(), SpreadOptions{.strategy = "full_shard"}, 100);
  const std::vector<TokenIds> rows = squad_like_sequences(BloomConfig().vocab_size);
  Work work = gpu_work(rows);
  work.micro_batches = {training_batch(rows, 1 << 20, work.device)};  // one pass, as `tessera train` has it by default
  breakdown(world, work, SpreadOptions{.strategy = "single"}, 200);
  breakdown(world, work, SpreadOptions{.strategy = "zero3", .offload_optimizer = true, .offload_parameters = true}, 20);
}

int run(const std::string& what) {
  keep_freed_memory();  // as `tessera train` does
  const bool is_known = what == "overhead" || what == "gpu" || what == "breakdown";
  if (!is_known) throw UsageError("usage: engine_bench overhead|gpu|breakdown");
  WorldOptions options;
  options.banner = false;
  run_thread_ranks(1, options, [&](World& world) {
    what == "gpu" ? gpu(world) : what == "breakdown" ? breakdowns(world) : overhead(world);
  });
  return status;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  try {
    return tessera::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "engine_bench: {}\n", error.what());
    return 1;
  }
}
