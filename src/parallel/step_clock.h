// Where a step's time goes: always on, since it costs a clock reading (on a GPU: an event) per change of part.
//
//   StepClock clock(device);
//   clock.begin();
//   for each step:
//     { const auto part = clock.enter(StepPart::kForward); ... }   // nested: the inner part takes over until it ends
//     clock.end_step();
//   clock.times();
//
// Exactly one part runs at any moment, so the parts of a step add up to it. On a GPU the times are the device's: the
// marks are events on the current stream, read once they have passed, so nothing waits for them. What the host does
// while the device still computes costs nothing there, and is not shown.
//
// The thread that runs the step, or autograd's thread while that one waits for it.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

// kCommunication and kTransfer: waiting for a collective, or a copy between host and device, that computation did not
// hide. kOther: everything between updates, such as logs, evaluations and checkpoints.
enum class StepPart { kData, kForward, kBackward, kCommunication, kTransfer, kUpdate, kOther };
inline constexpr std::size_t kNumStepParts = 7;
const std::array<std::string, kNumStepParts>& step_part_names();  // "data wait", ... in the order above

// Seconds by part.
using PartSeconds = std::array<double, kNumStepParts>;

struct StepTimes {
  std::int64_t num_steps = 0;
  PartSeconds mean{}, deviation{};  // per step
  double step_mean = 0, step_deviation = 0;

  // For exchange between ranks.
  std::vector<double> numbers() const;
  static StepTimes of(const std::vector<double>& numbers);
};

class StepClock {
 public:
  explicit StepClock(c10::Device device) : device_(device) {}

  class Scope {
   public:
    Scope(StepClock& clock, StepPart part, bool is_sealed);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepClock& clock_;
    StepPart before_;
    bool is_sealed_;
    at::RecordFunction traced_;  // seen by a profiler, if one runs
  };
  [[nodiscard]] Scope enter(StepPart part) { return {*this, part, false}; }
  // Parts entered within it count as this one: an evaluation's forward is no part of the step's.
  [[nodiscard]] Scope enter_sealed(StepPart part) { return {*this, part, true}; }

  void begin();     // the first step starts now
  void end_step();  // the next one starts now

  // Of all steps but the first, which prepares what the others use (or of that one, if it is the only one). Waits for
  // the device.
  StepTimes times();
  // Of the steps that have passed on the device since the last call; 0 steps: of none.
  struct Recent {
    std::int64_t num_steps = 0;
    PartSeconds mean{};
  };
  Recent take_recent();

 private:
  struct Mark {
    StepPart part;
    double seconds;                     // on a CPU
    std::shared_ptr<c10::Event> event;  // on a GPU
  };
  using Step = std::vector<Mark>;  // the last one is the next step's first

  Mark mark(StepPart part);
  void switch_to(StepPart part);
  void collect(bool waits);
  void add(const Step& step);

  c10::Device device_;
  StepPart part_ = StepPart::kOther;
  int num_seals_ = 0;
  bool is_running_ = false;
  Step now_;
  std::deque<Step> passed_;                         // whose events may not have happened yet
  std::vector<std::shared_ptr<c10::Event>> spare_;  // making an event costs more than recording it

  std::int64_t num_steps_ = 0;
  PartSeconds first_{}, sum_{}, square_{}, recent_{};
  std::int64_t num_recent_ = 0;
  double step_sum_ = 0, step_square_ = 0;
};

}  // namespace tessera
