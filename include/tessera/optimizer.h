// Updates the parameters of a Sharded (tessera/shard.h): each rank updates the part that the strategy assigns to it, in
// fused kernels.
//
// One Optimizer per Sharded, which must outlive it. Every rank passes the same arguments. One thread at a time. A
// parameter that has no gradient in a step is updated with zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tessera/optimizer_numbers.h"
#include "tessera/shard.h"

namespace tessera {

struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool decoupled = true;  // false: Adam, with the decay added to the gradient
};

struct Sgd {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

// Any other optimizer, by a word of `tessera train --optim`: {"lion_32bit", 1e-4, {.weight_decay = 0.1}}. It reads only
// the numbers in its formula.
struct NamedOptimizer {
  std::string name;
  double learning_rate = 1e-3;
  OptimizerNumbers numbers{};
};

struct StepOptions {
  double max_norm = 0;  // clips the gradient's norm over all parameters; 0: no clipping
  // Divides the sum of all gradients. 0: the number of losses since the last step, over all ranks, which gives the
  // gradient of their mean. If each loss is a sum over tokens, pass the number of tokens over all ranks.
  double divisor = 0;
};

struct StepResult {
  double gradient_norm = 0;   // of the divided gradient, before clipping
  bool skipped = false;       // the gradient was not finite on some rank: nothing was changed anywhere
  double loss_scale = 1;      // the factor of this step's losses; 1 except with float16
  std::string why_skipped{};  // which ranks' gradients were not finite, if the step was skipped
};

class Optimizer {
 public:
  // Collective. Throws if an option is out of range, or differs from rank 0's.
  Optimizer(Sharded& sharded, const AdamW& options);
  Optimizer(Sharded& sharded, const Sgd& options);
  Optimizer(Sharded& sharded, const NamedOptimizer& options);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Call it after Sharded::backward. Collective.
  StepResult step(const StepOptions& options = {});

  double learning_rate() const;
  void set_learning_rate(double learning_rate);  // of the next steps
  std::int64_t num_updates() const;              // steps that were not skipped

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
