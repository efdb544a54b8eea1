// A module's buffers (batch-norm's statistics) across ranks: never split, made alike before a step.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "tessera/world.h"

namespace tessera {

enum class BufferRule {
  kBroadcast,  // rank 0's, as DistributedDataParallel does
  kAverage,    // the mean over ranks of float32, float16 and bfloat16; others are rank 0's
  kLocal,      // every rank keeps its own
};

class ModuleBuffers {
 public:
  // Moves the buffers to the device; they become views of one flat tensor a type, so that there is one collective a
  // type.
  ModuleBuffers(World& world, torch::nn::Module& model, at::Device device, BufferRule rule);

  bool empty() const { return flat_.empty(); }
  // Collective.
  void make_alike();
  void take_from_first();  // whatever the rule: before the first step

 private:
  void take_from_first(const at::Tensor& flat);

  World& world_;
  BufferRule rule_;
  std::vector<at::Tensor> flat_;  // one a type
};

}  // namespace tessera
