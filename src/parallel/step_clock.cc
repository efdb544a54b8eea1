#include "parallel/step_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/host.h"

namespace tessera {
namespace {

constexpr double kMsPerSecond = 1000;

double deviation_of(double sum, double square, double count) {
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, square / count - mean * mean));
}

double total_of(const PartSeconds& parts) {
  double total = 0;
  for (const double seconds : parts) total += seconds;
  return total;
}

}  // namespace

const std::array<std::string, kNumStepParts>& step_part_names() {
  static const std::array<std::string, kNumStepParts> names = {"data wait",     "forward", "backward", "communication",
                                                               "host transfer", "update",  "other"};
  return names;
}

std::vector<double> StepTimes::numbers() const {
  std::vector<double> all = {static_cast<double>(num_steps), step_mean, step_deviation};
  all.insert(all.end(), mean.begin(), mean.end());
  all.insert(all.end(), deviation.begin(), deviation.end());
  return all;
}

StepTimes StepTimes::of(const std::vector<double>& numbers) {
  StepTimes times;
  times.num_steps = static_cast<std::int64_t>(numbers.at(0));
  times.step_mean = numbers.at(1);
  times.step_deviation = numbers.at(2);
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    times.mean[i] = numbers.at(3 + i);
    times.deviation[i] = numbers.at(3 + kNumStepParts + i);
  }
  return times;
}

StepClock::Scope::Scope(StepClock& clock, StepPart part, bool is_sealed)
    : clock_(clock), before_(clock.part_), is_sealed_(is_sealed), traced_(at::RecordScope::USER_SCOPE) {
  if (traced_.isActive()) traced_.before(step_part_names()[static_cast<std::size_t>(part)]);
  clock_.switch_to(part);
  if (is_sealed_) ++clock_.num_seals_;
}

StepClock::Scope::~Scope() {
  if (is_sealed_) --clock_.num_seals_;
  try {
    clock_.switch_to(before_);
  } catch (...) {  // a GPU that has failed takes no more events; the error that ends the run is on its way
    clock_.is_running_ = false;
  }
}

StepClock::Mark StepClock::mark(StepPart part) {
  if (device_.is_cpu()) return {part, steady_seconds(), nullptr};
  std::shared_ptr<c10::Event> event;
  if (spare_.empty()) {
    event = std::make_shared<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with its time
  } else {
    event = std::move(spare_.back());
    spare_.pop_back();
  }
  event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return {part, 0, std::move(event)};
}

void StepClock::switch_to(StepPart part) {
  if (num_seals_ > 0 || part == part_) return;
  part_ = part;
  if (is_running_) now_.push_back(mark(part));
}

void StepClock::begin() {
  is_running_ = true;
  now_ = {mark(part_)};
}

void StepClock::end_step() {
  if (!is_running_) return;
  now_.push_back(mark(part_));
  Step next = {now_.back()};
  passed_.push_back(std::exchange(now_, std::move(next)));
  collect(/*waits=*/false);
}

void StepClock::collect(bool waits) {
  while (!passed_.empty()) {
    Step& step = passed_.front();
    const std::shared_ptr<c10::Event>& last = step.back().event;
    if (last && waits) last->synchronize();
    if (last && !waits && !last->query()) return;
    add(step);
    for (Mark& each : step) {
      if (each.event && each.event.use_count() == 1) spare_.push_back(std::move(each.event));
    }
    passed_.pop_front();
  }
}

void StepClock::add(const Step& step) {
  PartSeconds parts{};
  for (std::size_t i = 0; i + 1 < step.size(); ++i) {
    const Mark &from = step[i], &to = step[i + 1];
    parts[static_cast<std::size_t>(from.part)] +=
        from.event ? from.event->elapsedTime(*to.event) / kMsPerSecond : to.seconds - from.seconds;
  }
  for (std::size_t i = 0; i < kNumStepParts; ++i) recent_[i] += parts[i];
  ++num_recent_;
  if (num_steps_++ == 0) {
    first_ = parts;
    return;
  }
  const double whole = total_of(parts);
  step_sum_ += whole;
  step_square_ += whole * whole;
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    sum_[i] += parts[i];
    square_[i] += parts[i] * parts[i];
  }
}

StepTimes StepClock::times() {
  collect(/*waits=*/true);
  StepTimes times;
  if (num_steps_ <= 1) {
    times.num_steps = num_steps_;
    times.mean = first_;
    times.step_mean = total_of(first_);
    return times;
  }
  times.num_steps = num_steps_ - 1;
  const double count = static_cast<double>(times.num_steps);
  times.step_mean = step_sum_ / count;
  times.step_deviation = deviation_of(step_sum_, step_square_, count);
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    times.mean[i] = sum_[i] / count;
    times.deviation[i] = deviation_of(sum_[i], square_[i], count);
  }
  return times;
}

StepClock::Recent StepClock::take_recent() {
  collect(/*waits=*/false);
  Recent recent{std::exchange(num_recent_, 0), std::exchange(recent_, {})};
  for (double& seconds : recent.mean) seconds /= static_cast<double>(std::max<std::int64_t>(1, recent.num_steps));
  return recent;
}

}  // namespace tessera
