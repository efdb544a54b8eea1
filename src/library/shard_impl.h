// What a tessera::Sharded and its tessera::Optimizer hold, and the order in which calls are allowed.
#pragma once

#include <string>
#include <vector>

#include "library/model_map.h"
#include "parallel/train_step.h"
#include "tessera/optimizer.h"
#include "tessera/shard.h"

namespace tessera {

// A model is spread by one Sharded at a time: two would move its parameters under each other's feet.
class Claim {
 public:
  explicit Claim(const torch::nn::Module& model);  // throws UsageError
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  std::vector<const void*> parameters_;
};

struct Sharded::Impl {
  Impl(World& its_world, torch::nn::Module& its_model, const ShardOptions& its_options);

  // Throws Error if an earlier call failed or a pass is in progress. `call` is what the user called.
  void check_idle(const char* call) const;
  // Runs `work`; an exception from it makes this Sharded unusable.
  void guarded(const char* call, const std::function<void()>& work);
  void backward(const char* call, const at::Tensor& loss, bool last_micro_step);
  // All ranks take rank 0's batch-norm statistics, if a pass with gradients may have made them differ. Collective.
  void sync_buffers();
  // Names a unit that a failed forward had not run: the likeliest cause if parameters are released.
  std::string advice_about_units() const;

  World& world;
  torch::nn::Module& model;
  Claim claim;
  ShardOptions options;
  std::vector<Unit> units;
  ModelMap map;
  TrainStep step;
  ModelWatch watch;

  bool in_forward = false, in_backward = false, has_optimizer = false;
  std::vector<bool> has_run;            // by unit, in this pass
  std::vector<std::size_t> running;     // units whose body is running
  int num_passes = 0;                   // with gradients, since the last backward
  int num_losses = 0;                   // whose backward has run since the last step
  bool gradients_are_complete = false;  // by backward(), not only accumulate()
  bool buffers_may_differ = false;
  std::string failure;  // the reason why this Sharded is unusable
};

struct Optimizer::Impl {
  Impl(Sharded& its_sharded, const OptimizerChoice& choice, double its_learning_rate);

  double learning_rate;
  Sharded::Impl& sharded;
};

}  // namespace tessera
