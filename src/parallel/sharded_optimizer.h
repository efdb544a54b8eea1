// The fourth verb: updates the master values of every unit from their reduced gradients.
//
// After the engine's last backward of a step. Every rank gives the same arguments. docs/design/parallel.md, 'The
// update'.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/engine.h"

namespace tessera {

// AdamW's.
struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // of the decaying parameters
};

struct UpdateArguments {
  double learning_rate = 0;
  double divisor = 1;   // of the summed gradient: counted tokens, or ranks; a loss scale is a factor of it
  double max_norm = 0;  // clips the divided gradient's global norm; 0: no clipping
};

struct UpdateResult {
  double gradient_norm = 0;  // of the divided gradient, before clipping
  bool skipped = false;      // not finite: nothing was changed
};

class ShardedOptimizer {
 public:
  // The engine must outlive it.
  ShardedOptimizer(Engine& engine, const OptimizerOptions& options);

  UpdateResult update(const UpdateArguments& arguments);
  std::int64_t num_updates() const { return num_updates_; }

 private:
  struct Moments {  // of one unit's range
    at::Tensor first, second;
  };

  double gradient_norm() const;
  void update_unit(FlatUnit& unit, const Moments& moments, const UpdateArguments& arguments, double factor) const;

  Engine& engine_;
  OptimizerOptions options_;
  std::vector<Moments> moments_;
  std::int64_t num_updates_ = 0;
};

}  // namespace tessera
