// What a tessera::Optimizer holds.
#pragma once

#include "library/shard_impl.h"
#include "tessera/optimizer.h"

namespace tessera {

struct Optimizer::Impl {
  Impl(Sharded& its_sharded, const OptimizerChoice& choice, double its_learning_rate);

  double learning_rate;
  Sharded::Impl& sharded;
};

}  // namespace tessera
