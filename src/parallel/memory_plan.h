// How much memory a step takes on one rank, on its device and on the host, before anything is allocated.
//
//   const auto units = planned_units(*model_on_meta, model_on_meta->units(), {});
//   const MemoryPlan plan = plan_memory(units, step.get(), options);
//
// The plan simulates one update: what the engine does to units (gather, flat gradient, reduction, update) interleaved
// with what the model does to activations (StepMemory). It records the largest sum and its parts. In flight, besides
// the root, are the unit that computes and the prefetched one, both whole; and the flat gradient that is being computed
// and the one that is being reduced. docs/memory.md has the formula. Arithmetic only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/step_memory.h"
#include "parallel/engine.h"
#include "parallel/flat_layout.h"
#include "parallel/placement.h"
#include "tessera/unit.h"

namespace tessera {

struct PlannedUnit {
  std::string name;
  std::vector<FlatLayout::Entry> parameters;
};

// The units of a model, the root last, as the engine makes them. Parameters may be on the meta device.
std::vector<PlannedUnit> planned_units(torch::nn::Module& model, const std::vector<Unit>& units,
                                       const std::function<bool(const std::string& name)>& is_exempt_from_decay = {});

struct MemoryPlanOptions {
  SpreadOptions spread;
  UnitTypes types;
  int num_moments = 2;  // float32 numbers that the optimizer keeps for each parameter
  int num_ranks = 1;
  int ranks_per_node = 0;  // 0: all ranks are on one node
  int num_micro_steps = 1;
  bool checkpoints_activations = false;
  // A unit's flat gradient exists until its reduction has read it: while the next unit's is computed (across nodes,
  // while the next two are). False: it is freed at once, as with ranks that are threads in lockstep.
  bool reductions_take_time = true;
  bool on_gpu = true;                    // else the device is a CPU, and offload changes nothing
  bool host_memory_is_separate = false;  // of a CPU: tests pretend so, here as in the engine
  std::int64_t buffer_bytes = 0;         // of the module: batch-norm's statistics
};

struct MemoryUse {
  std::int64_t parameters = 0;  // between steps, in the compute type
  std::int64_t gradients = 0;   // reduced, or kept whole if the row does so
  std::int64_t optimizer = 0;   // master values and moments
  std::int64_t in_flight = 0;   // gathered units, gradients on their way
  std::int64_t activations = 0;

  std::int64_t total() const { return parameters + gradients + optimizer + in_flight + activations; }
};

struct MemoryPlan {
  MemoryUse resident;       // on the device between steps
  MemoryUse peak;           // on the device when its sum is largest
  std::string peak_moment;  // "backward of transformer.h.23"
  MemoryUse host;           // offloaded state, always allocated
};

// `step` may be null: no activations. Throws UsageError if the options make no sense (no ranks, 'single' on several,
// a node larger than the world), and Error with the status kOutOfMemory for more than an exbibyte.
MemoryPlan plan_memory(const std::vector<PlannedUnit>& units, const StepMemory* step, const MemoryPlanOptions& options);

// The row adapted to these ranks and nodes, and the number of ranks that it splits a unit over.
Placement planned_placement(const MemoryPlanOptions& options);
int num_shards_of(const MemoryPlanOptions& options);
int ranks_of_node(const MemoryPlanOptions& options);

}  // namespace tessera
