// What a tessera::Sharded holds, and which call may follow which.
#pragma once

#include <string>
#include <vector>

#include "library/model_map.h"
#include "parallel/train_step.h"
#include "tessera/shard.h"

namespace tessera {

struct Sharded::Impl {
  Impl(World& its_world, torch::nn::Module& its_model, const ShardOptions& its_options);

  // Throws Error where an earlier call failed or a pass is under way. `call` is what the user called.
  void check_idle(const char* call) const;
  // Runs `work`; what it throws makes this Sharded unusable.
  void guarded(const char* call, const std::function<void()>& work);
  void backward(const char* call, const at::Tensor& loss, bool last_micro_step);
  // Collective, where a pass with gradients may have made batch norm's statistics differ: all take rank 0's.
  void sync_buffers();
  // What a forward that failed had not run: the likeliest reason where parameters are released.
  std::string advice_about_units() const;

  World& world;
  torch::nn::Module& model;
  ShardOptions options;
  std::vector<Unit> units;
  ModelMap map;
  TrainStep step;
  ModelWatch watch;

  bool in_forward = false, in_backward = false, has_optimizer = false;
  std::vector<bool> has_run;            // by unit, in this pass
  std::vector<std::size_t> running;     // units whose body is being run
  int num_passes = 0;                   // with gradients, since the last backward
  int num_losses = 0;                   // passed back since the last step
  bool gradients_are_complete = false;  // by backward(), not only accumulate()
  bool buffers_may_differ = false;
  std::string failure;  // what made this unusable
};

}  // namespace tessera
