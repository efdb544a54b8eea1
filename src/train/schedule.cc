#include "train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

using Rate = std::function<double(std::int64_t)>;

// The factor of the learning rate after the warm-up, given the options, the warm-up's steps and the steps done. The
// order of operations is that of the originals, so the bits are the same.
struct Terms {
  ScheduleOptions options;
  double warmup = 0;  // steps
  double total = 0;   // steps
  double progress(double step) const { return (step - warmup) / std::max(1.0, total - warmup); }
};
using Factor = double (*)(const Terms&, double step);

double constant(const Terms&, double) {
  return 1.0;
}

double linear(const Terms& terms, double step) {
  return std::max(0.0, (terms.total - step) / std::max(1.0, terms.total - terms.warmup));
}

double cosine_wave(const Terms& terms, double step) {
  const double num_cycles = terms.options.num_cycles.value_or(0.5);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles * 2.0 * terms.progress(step)));
}

double cosine(const Terms& terms, double step) {
  return std::max(0.0, cosine_wave(terms, step));
}

double cosine_with_min_lr(const Terms& terms, double step) {
  const double least = terms.options.min_lr ? *terms.options.min_lr / terms.options.learning_rate
                                            : terms.options.min_lr_rate.value_or(0);
  return std::max(0.0, cosine_wave(terms, step) * (1 - least) + least);
}

double cosine_with_restarts(const Terms& terms, double step) {
  const double progress = terms.progress(step);
  if (progress >= 1.0) return 0.0;
  const double num_cycles = terms.options.num_cycles.value_or(1);
  return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * std::fmod(num_cycles * progress, 1.0))));
}

double polynomial(const Terms& terms, double step) {
  const double first = terms.options.learning_rate;
  const double last = terms.options.lr_end.value_or(1e-7);
  if (step > terms.total) return last / first;
  const double remaining = 1 - (step - terms.warmup) / (terms.total - terms.warmup);
  return ((first - last) * std::pow(remaining, terms.options.power.value_or(1)) + last) / first;
}

double inverse_sqrt(const Terms& terms, double step) {
  const double timescale = terms.options.timescale.value_or(terms.warmup > 0 ? terms.warmup : 10'000);
  return 1.0 / std::sqrt((step + (timescale - terms.warmup)) / timescale);
}

Rate after_warmup(const ScheduleOptions& options, Factor factor) {
  const Terms terms{options, static_cast<double>(warmup_steps_of(options)), static_cast<double>(options.total_steps)};
  return [terms, factor](std::int64_t num_advanced) {
    const double step = static_cast<double>(num_advanced);
    const double value = step < terms.warmup ? step / std::max(1.0, terms.warmup) : factor(terms, step);
    return terms.options.learning_rate * value;
  };
}

// DeepSpeed's schedulers count from -1: at the start and after the first advance they give the lowest rate.
Rate deepspeed_warmup(const ScheduleOptions& options, bool decays) {
  const double warmup = static_cast<double>(std::max<std::int64_t>(2, warmup_steps_of(options)));
  const double total = static_cast<double>(options.total_steps);
  const double inverse_log = 1.0 / std::log(warmup);
  return [=](std::int64_t num_advanced) {
    if (num_advanced == 0) return options.warmup_min_lr;
    const double step = static_cast<double>(num_advanced - 1);
    double factor = 1.0;
    if (step < warmup) {
      factor = options.warmup_shape == WarmupShape::kLog ? inverse_log * std::log(step + 1) : step / warmup;
    } else if (decays) {
      factor = std::max(0.0, (total - step) / std::max(1.0, total - warmup));
    }
    return options.warmup_min_lr + (options.learning_rate - options.warmup_min_lr) * factor;
  };
}

// Multiplies repeatedly, as torch does: a power would differ in the last bits.
Rate step_lr(const ScheduleOptions& options) {
  return [options](std::int64_t num_advanced) {
    double rate = options.learning_rate;
    for (std::int64_t step = options.step_size; step <= num_advanced; step += options.step_size) rate *= options.gamma;
    return rate;
  };
}

struct Kind {
  const char* name;
  Rate (*make)(const ScheduleOptions&);
};

template <Factor factor>
Rate make(const ScheduleOptions& options) {
  return after_warmup(options, factor);
}

const Kind kKinds[] = {
    {"linear", make<linear>},
    {"cosine", make<cosine>},
    {"cosine_with_restarts", make<cosine_with_restarts>},
    {"cosine_with_min_lr", make<cosine_with_min_lr>},
    {"polynomial", make<polynomial>},
    {"constant",
     [](const ScheduleOptions& options) -> Rate { return [options](std::int64_t) { return options.learning_rate; }; }},
    {"constant_with_warmup", make<constant>},
    {"inverse_sqrt", make<inverse_sqrt>},
    {"WarmupLR", [](const ScheduleOptions& options) { return deepspeed_warmup(options, false); }},
    {"WarmupDecayLR", [](const ScheduleOptions& options) { return deepspeed_warmup(options, true); }},
    {"StepLR", step_lr},
};

void check(const ScheduleOptions& options) {
  const auto refuse = [](const std::string& message) { throw UsageError(message); };
  if (!(options.learning_rate >= 0 && std::isfinite(options.learning_rate))) {
    refuse(fmt::format("learning_rate is {}: expected a number of at least 0", options.learning_rate));
  }
  if (!(options.warmup_ratio >= 0 && options.warmup_ratio <= 1)) {
    refuse(fmt::format("warmup_ratio is {}: expected a number from 0 to 1", options.warmup_ratio));
  }
  if (options.warmup_steps < 0) refuse(fmt::format("warmup_steps is {}: expected at least 0", options.warmup_steps));
  const bool warms_up = options.kind != "constant" && options.kind != "StepLR";
  // A constant rate may be reached at any time, but a decay would never start.
  const bool may_be_longer = options.kind == "WarmupLR" || options.kind == "constant_with_warmup";
  if (warms_up && !may_be_longer && warmup_steps_of(options) > options.total_steps) {
    refuse(fmt::format("warmup_steps is {}, but the run has only {} updates: give at most that many",
                       options.warmup_steps, options.total_steps));
  }
  if (options.kind == "polynomial") {
    if (options.learning_rate <= options.lr_end.value_or(1e-7)) {
      refuse(fmt::format("lr_end is {}: expected a number below the learning rate, {}", options.lr_end.value_or(1e-7),
                         options.learning_rate));
    }
    if (warmup_steps_of(options) >= options.total_steps) {
      refuse(fmt::format("a polynomial decay needs updates after the warm-up, but {} of {} are warm-up: give fewer",
                         warmup_steps_of(options), options.total_steps));
    }
  }
  if (options.kind == "cosine_with_min_lr") {
    if (options.min_lr.has_value() == options.min_lr_rate.has_value()) {
      refuse("cosine_with_min_lr needs one of min_lr and min_lr_rate in lr_scheduler_kwargs");
    }
    if (options.min_lr && options.learning_rate == 0) refuse("min_lr needs a learning rate above 0");
  }
  if (options.kind == "inverse_sqrt" && options.timescale && !(*options.timescale > 0)) {
    refuse(fmt::format("timescale is {}: expected a number above 0", *options.timescale));
  }
  if (options.kind == "StepLR" && options.step_size < 1) {
    refuse(fmt::format("step_size is {}: expected at least 1", options.step_size));
  }
}

}  // namespace

std::int64_t warmup_steps_of(const ScheduleOptions& options) {
  if (options.warmup_steps > 0) return options.warmup_steps;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(options.total_steps) * options.warmup_ratio));
}

Schedule::Schedule(const ScheduleOptions& options) {
  const auto found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.name == options.kind; });
  if (found == std::end(kKinds)) {
    throw UsageError(
        fmt::format("lr_scheduler_type is '{}': expected one of {}", options.kind, join(schedule_kinds(), ", ")));
  }
  check(options);
  rate_ = found->make(options);
}

}  // namespace tessera
