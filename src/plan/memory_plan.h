// How much memory a step takes on one rank, on its device and on the host, before anything is allocated.
//
//   const PlannedModel model = planned_language_model(*model_on_meta, config, "config.json");
//   const MemoryPlan plan = plan_memory(model, request);
//
// The plan plays one update: what the UnitSchedule does to units (gather, flat gradient, reduction, update) interleaved
// with what the model does to activations (StepMemory). It records the largest sum and its parts. In flight, besides
// the root, are the unit that computes and the prefetched one, both whole; and the flat gradient that is being computed
// and the one that is being reduced. docs/memory.md has the formula. Arithmetic only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/placement.h"
#include "parallel/unit_layout.h"
#include "plan/planned_model.h"

namespace tessera {

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

  int node_size() const { return ranks_per_node == 0 ? num_ranks : ranks_per_node; }
  Placement placement() const;  // the row adapted to these ranks and nodes
  int num_shards() const;       // the number of ranks that it splits a unit over
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

struct PlanRequest {
  MemoryPlanOptions options;
  StepShape shape;  // of a micro-batch
};
MemoryPlan plan_memory(const PlannedModel& model, const PlanRequest& request);

// With offload: the largest units_on_device with which the device's peak is at most `limit_bytes`; none: not even 0.
std::optional<std::int64_t> most_units_on_device(const PlannedModel& model, const PlanRequest& request,
                                                 std::int64_t limit_bytes);

// What would make a run fit into memory: `tessera plan --memory` and a run that is out of memory print it.
struct MemoryAdvice {
  std::string change;  // in the words of the settings: "--gradient_checkpointing"
  PlanRequest request;
  MemoryPlan plan;
};

// The changes after which the device's peak is at most `limit_bytes`: first those of one setting, then those of two,
// and so on, each sorted by their cost in speed. At most `at_most`; empty if none is enough.
std::vector<MemoryAdvice> advise(const PlannedModel& model, const PlanRequest& request, std::int64_t limit_bytes,
                                 std::size_t at_most = 3);

}  // namespace tessera
