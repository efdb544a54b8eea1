// ResNet-50 training steps on a GPU, on synthetic pictures that are already there: the engine as `tessera train
// resnet-tinyimagenet` drives it, against a plain libtorch loop, alternating in one run.
//
//   resnet_bench [fp16|bf16] [batch]
//
// Prints images per second, peak memory and the mark (bench/resnet_bench.sh). Exit status 3: the mark was missed.
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "comm/gpu_support.h"
#include "core/error.h"
#include "core/text.h"
#include "jobs/image_task.h"
#include "model/resnet.h"
#include "parallel/engine.h"
#include "parallel/loss_scale.h"
#include "parallel/sharded_optimizer.h"
#include "tessera/world.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kClasses = 200, kSide = 224;
constexpr int kWarmups = 8, kRounds = 5, kStepsOfRound = 12;
constexpr double kLeastImages = 7500, kRate = 0.001, kMomentum = 0.9, kDecay = 1e-4;

struct Work {
  at::ScalarType type;
  at::Tensor images, labels;
  std::int64_t batch() const { return labels.numel(); }
};

// What Trainer::run_update does with an ImageTask.
class Ours {
 public:
  Ours(World& world, const Work& work) : work_(work), sums_(at::zeros({3}, at::dtype(at::kDouble).device(at::kCUDA))) {
    EngineOptions options;
    options.spread.strategy = "single";
    options.device = at::Device(at::kCUDA, 0);
    engine_ = std::make_unique<Engine>(world, model_, model_.units(), options);
    optimizer_ = std::make_unique<ShardedOptimizer>(
        *engine_, choose_optimizer("sgd", {.weight_decay = kDecay, .momentum = kMomentum}));
    if (work.type == at::kHalf) scaler_.emplace(LossScaleOptions{});
  }

  void step() {
    const double scale = scaler_ ? scaler_->scale() : 1;
    at::Tensor loss;
    {
      const auto pass = engine_->forward();
      loss = image_loss(model_, work_.images, work_.labels, *engine_, sums_);
    }
    engine_->backward(loss * (scale / static_cast<double>(work_.batch())));
    const UpdateResult result = optimizer_->update({.learning_rate = kRate, .divisor = scale, .max_norm = 0});
    if (scaler_) scaler_->after_step(result.skipped);
  }

 private:
  const Work& work_;
  ResNet50 model_{kClasses};
  at::Tensor sums_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
  std::optional<LossScaler> scaler_;
};

// Autocast, channels-last parameters, torch::optim::SGD, and what GradScaler does: unscale, check for infinities, step.
class Plain {
 public:
  explicit Plain(const Work& work) : work_(work), optimizer_(moved_parameters(), options()) {}

  void step() {
    at::autocast::set_autocast_dtype(at::kCUDA, work_.type);
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    const at::Tensor logits = model_.forward(work_.images);
    at::autocast::set_autocast_enabled(at::kCUDA, false);
    at::autocast::clear_cache();
    const at::Tensor loss = at::cross_entropy_loss(logits.to(at::kFloat), work_.labels);
    const bool scales = work_.type == at::kHalf;
    (scales ? loss * scale_ : loss).backward();
    bool is_finite = true;
    if (scales) {
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& parameter : model_.parameters()) gradients.push_back(parameter.grad());
      at::Tensor found = at::zeros({1}, at::device(at::kCUDA));
      at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, at::full({1}, 1 / scale_, found.options()));
      is_finite = found.item<float>() == 0;
    }
    if (is_finite) {
      optimizer_.step();
    } else {
      scale_ /= 2;
    }
    optimizer_.zero_grad(/*set_to_none=*/true);
  }

 private:
  static torch::optim::SGDOptions options() {
    return torch::optim::SGDOptions(kRate).momentum(kMomentum).weight_decay(kDecay);
  }
  std::vector<at::Tensor> moved_parameters() {
    model_.to(at::kCUDA);
    for (at::Tensor& parameter : model_.parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.data().contiguous(at::MemoryFormat::ChannelsLast));
    }
    return model_.parameters();
  }

  const Work& work_;
  ResNet50 model_{kClasses};
  double scale_ = 65536;
  torch::optim::SGD optimizer_;
};

// Images per second of one round.
double rate_of(const Work& work, const std::function<void()>& step) {
  gpu_support()->synchronize();
  const auto start = Clock::now();
  for (int i = 0; i < kStepsOfRound; ++i) step();
  gpu_support()->synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return static_cast<double>(work.batch() * kStepsOfRound) / seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

double peak_gib(const std::function<void()>& step) {
  at::accelerator::resetPeakStats(0);
  step();
  constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);
  return static_cast<double>(at::accelerator::getDeviceStats(0).allocated_bytes[kAll].peak) / (1 << 30);
}

int compare(World& world, at::ScalarType type, std::int64_t batch) {
  at::globalContext().setBenchmarkCuDNN(true);
  torch::manual_seed(0);
  const auto options = at::dtype(type).device(at::kCUDA);
  const Work work{type, at::randn({batch, 3, kSide, kSide}, options).contiguous(at::MemoryFormat::ChannelsLast),
                  at::randint(kClasses, {batch}, at::dtype(at::kLong).device(at::kCUDA))};
  Ours ours(world, work);
  Plain plain(work);
  const std::function<void()> our_step = [&] { ours.step(); }, plain_step = [&] { plain.step(); };
  for (int i = 0; i < kWarmups; ++i) our_step(), plain_step();
  std::vector<double> our_rates, plain_rates, ratios;
  for (int round = 0; round < kRounds; ++round) {
    our_rates.push_back(rate_of(work, our_step));
    plain_rates.push_back(rate_of(work, plain_step));
    ratios.push_back(our_rates.back() / plain_rates.back());
  }
  const char* name = type == at::kHalf ? "fp16" : "bf16";
  fmt::print("ResNet-50, {} channels-last, batch {} of {} x {}, synthetic, one GPU\n", name, batch, kSide, kSide);
  fmt::print("tessera's engine   {:8.0f} img/s, peak {:.2f} GiB\n", median(our_rates), peak_gib(our_step));
  fmt::print("plain libtorch     {:8.0f} img/s, peak {:.2f} GiB (with the engine's model beside it)\n",
             median(plain_rates), peak_gib(plain_step));
  fmt::print("ratio              {:8.3f}\n", median(ratios));
  const bool is_met = median(our_rates) >= kLeastImages;
  fmt::print("mark: ResNet-50 {} batch {} channels-last, images a second: {:.0f} (at least {}): {}\n", name, batch,
             median(our_rates), kLeastImages, is_met ? "met" : "missed");
  return is_met ? 0 : 3;
}

int run(const std::vector<std::string>& words) {
  const std::string type = words.empty() ? "fp16" : words[0];
  if (type != "fp16" && type != "bf16") throw UsageError("resnet_bench [fp16|bf16] [batch]");
  const std::int64_t batch = words.size() > 1 ? parse_integer(words[1]).value_or(0) : 512;
  if (batch < 1) throw UsageError("resnet_bench: the batch is a number from 1 on");
  if (gpu_support() == nullptr) throw Error("resnet_bench needs a GPU: " + no_gpu_reason());
  gpu_support()->set_device(0);
  WorldOptions options;
  options.banner = false;
  int status = 0;
  run_thread_ranks(1, options,
                   [&](World& world) { status = compare(world, type == "fp16" ? at::kHalf : at::kBFloat16, batch); });
  return status;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  try {
    return tessera::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    fmt::print(stderr, "resnet_bench: {}\n", error.what());
    return 1;
  }
}
