// What a tessera::Optimizer holds.
#pragma once

#include "library/shard_impl.h"
#include "parallel/sharded_optimizer.h"
#include "tessera/optimizer.h"

namespace tessera {

struct Optimizer::Impl {
  Impl(Sharded& its_sharded, const OptimizerOptions& options, double its_learning_rate);

  double learning_rate;
  Sharded::Impl& sharded;
  ShardedOptimizer optimizer;
};

}  // namespace tessera
