// A training run with the engine, of any small model in any row of the table: what the parity tests compare.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parallel/sharded_optimizer.h"
#include "tessera/unit.h"

namespace tessera {

// A model and one rank's data.
class TrainedJob {
 public:
  struct Loss {
    at::Tensor sum;
    std::int64_t num_counted = 0;
  };

  virtual ~TrainedJob() = default;
  virtual UnitModel& model() = 0;
  virtual Loss loss(int step, int micro_step, UnitRunner& runner) = 0;
};
using MakeJob = std::function<std::unique_ptr<TrainedJob>(int rank, int num_ranks)>;

struct Row {
  std::string strategy = "ddp";
  bool offload_optimizer = false, offload_parameters = false, delayed_update = false;
  std::int64_t units_on_device = 0;

  SpreadOptions spread() const {
    return {.strategy = strategy,
            .offload_optimizer = offload_optimizer,
            .offload_parameters = offload_parameters,
            .delayed_update = delayed_update,
            .units_on_device = units_on_device};
  }
  Placement placement() const { return placement_of(spread()); }
  std::string name() const;
};

struct Training {
  Row row;
  int num_steps = 20;
  int num_micro_steps = 1;
  at::ScalarType type = at::kFloat;
  OptimizerChoice optimizer = choose_optimizer("adamw");
  double learning_rate = 3e-3;
  std::function<double(int step)> learning_rate_of = {};  // instead
  double max_norm = 1;
  bool forward_prefetch = true;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
  HostUpdates host_updates = HostUpdates::kAuto;
  bool update_during_backward = false;
  // Parameters without weight decay.
  std::function<bool(const std::string& name)> is_exempt_from_decay = {};
};

// For all ranks: each has the same.
struct Trained {
  std::vector<double> losses;        // per update, over all that counted in it
  std::vector<double> norms;         // per update: of its gradient, before clipping
  std::vector<at::Tensor> masters;   // per unit: float32, whole, at the end
  std::vector<at::Tensor> computed;  // per parameter: in the compute type, whole, at the end
  std::vector<at::Tensor> buffers;   // per batch norm: rank 0's
};

// Collective. Expects all ranks to end with the same parameters and, after the last exchange, the same buffers.
Trained train(World& world, TrainedJob& job, const Training& how);

struct ThreadRanks {
  int num_ranks = 1;
  int ranks_per_node = 0;  // 0: one node
};
Trained train_on_threads(const ThreadRanks& ranks, const MakeJob& make_job, const Training& how);

void expect_same_bits(const Trained& found, const Trained& expected, const std::string& what);
// Losses and norms, each within `relative` of the expected one.
void expect_close(const Trained& found, const Trained& expected, double relative, const std::string& what);
// For losses, or for norms.
void expect_close(const std::vector<double>& found, const std::vector<double>& expected, double relative,
                  const std::string& what);
void expect_learnt(const Trained& result, const std::string& what);

}  // namespace tessera
