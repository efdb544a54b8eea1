// The memory a model's step takes beside its parameters, as a sequence of allocations and releases.
//
// A model's StepMemory describes what its forward and backward do to memory: what is kept for backward, what an
// operator takes while it runs, when autograd has a parameter's gradient. The memory planner plays it onto a MemoryTape
// and adds what a strategy does in between: gathers, flat gradients, reductions. Arithmetic only; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/json.h"
#include "kernels/sizes.h"

namespace tessera {

inline constexpr std::int64_t kFloatBytes = 4;

class MemoryTape {
 public:
  virtual ~MemoryTape() = default;
  virtual void take(std::int64_t bytes) = 0;
  virtual void give(std::int64_t bytes) = 0;
  // Autograd hands over the gradient of a parameter with this many elements, for which `take` was called before: a tape
  // that keeps gradients takes memory for its own copy and gives this one back.
  virtual void hand_over(std::int64_t numel) = 0;
  // The same of a gradient that is computed in the tape's own copy, where that is possible (kernels/gradient_room.h).
  virtual void hand_over_in_place(std::int64_t numel) { hand_over(numel); }

  void pass(std::int64_t bytes) { take(bytes), give(bytes); }  // temporary
  void give_unless(bool keeps, std::int64_t bytes) {
    if (!keeps) give(bytes);
  }
};

// One micro-batch, and what it runs on.
struct StepShape {
  std::int64_t num_tokens = 0;   // of all sequences; pictures for an image model
  std::int64_t num_counted = 0;  // tokens that the loss counts
  std::int64_t longest = 0;      // tokens of the longest sequence; side of a picture
  std::int64_t num_sequences = 1;
  std::int64_t element_bytes = 4;  // of the compute type
  bool on_gpu = false;
  bool training = true;  // dropout is active
  // AMP, for an image model: float32 parameters and gradients; each weight is cast when used, if the compute type
  // differs.
  bool casts_parameters = false;
};

// Calls follow a step: begin_forward, unit_forward for each unit, end_forward; end_backward, unit_backward for each
// unit from the last, begin_backward. With activation checkpointing unit_forward is called without `keeps`, and again
// with it before unit_backward.
class StepMemory {
 public:
  virtual ~StepMemory() = default;

  virtual std::size_t num_units() const = 0;
  virtual std::int64_t input_bytes(std::size_t unit) const = 0;  // of its one input, kept for backward
  virtual std::int64_t output_bytes(std::size_t unit) const = 0;

  virtual void begin_forward(MemoryTape& tape) const = 0;  // up to the first unit's input
  // `keeps`: with gradients; what is kept stays taken. The output is taken either way; the input stays.
  virtual void unit_forward(std::size_t unit, bool keeps, MemoryTape& tape) const = 0;
  virtual void end_forward(MemoryTape& tape) const = 0;   // from the last unit's output to the loss
  virtual void end_backward(MemoryTape& tape) const = 0;  // to the gradient of the last unit's output
  // From the gradient of the output, which it gives back unless it is held, to the gradient of the input; gives back
  // what was kept and the input.
  virtual void unit_backward(std::size_t unit, bool gradient_is_held, MemoryTape& tape) const = 0;
  virtual void begin_backward(MemoryTape& tape) const = 0;
};

// Backward of a unit that is recomputed first: its result and the incoming gradient stay until the end.
inline void recompute_and_backward(const StepMemory& step, std::size_t unit, MemoryTape& tape) {
  step.unit_forward(unit, true, tape);
  step.unit_backward(unit, /*gradient_is_held=*/true, tape);
  tape.give(2 * step.output_bytes(unit));
}

// What a matrix product [M, K] [K, N] takes while it runs, beside its result. `is_weight_gradient`: the first factor is
// transposed.
std::int64_t product_scratch_bytes(const StepShape& shape, std::int64_t M, std::int64_t K, std::int64_t N,
                                   bool is_weight_gradient);

// For a text model, by its config.json as make_language_model takes it.
std::unique_ptr<StepMemory> language_step_memory(const Json& config, const std::string& origin, const StepShape& shape);
// For ResNet-50: num_tokens pictures of longest x longest.
std::unique_ptr<StepMemory> resnet50_step_memory(std::int64_t num_classes, const StepShape& shape);

}  // namespace tessera
