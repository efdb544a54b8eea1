// The fourth verb: updates the master values of every unit from their reduced gradients.
//
// After the engine's last backward of a step. Every rank gives the same arguments. docs/design/parallel.md, 'The
// update'.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/adamw.h"
#include "kernels/sgd.h"
#include "parallel/engine.h"

namespace tessera {

// Learning rate and gradient scale come with each update; the weight decay is that of the decaying parameters.
using OptimizerOptions = std::variant<kernels::AdamW, kernels::Sgd>;

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
  struct Moments {  // of one unit's range, float32; undefined where the optimizer has none
    at::Tensor first, second;
  };

  double gradient_norm() const;
  void update_unit(const FlatUnit& unit, const Moments& moments, double learning_rate, double gradient_scale) const;
  void update_range(const FlatUnit& unit, const Moments& moments, FlatRange range, kernels::AdamW how) const;
  void update_range(const FlatUnit& unit, const Moments& moments, FlatRange range, kernels::Sgd how) const;

  Engine& engine_;
  OptimizerOptions options_;
  std::vector<Moments> moments_;
  std::int64_t num_updates_ = 0;
};

}  // namespace tessera
