// A module's buffers (batch-norm's statistics) across ranks: never split; before a step every rank takes rank 0's, as
// DistributedDataParallel does.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "tessera/world.h"

namespace tessera {

class ModuleBuffers {
 public:
  // Moves the buffers to the device; they become views of one flat tensor per type, so that there is one collective per
  // type.
  ModuleBuffers(World& world, torch::nn::Module& model, at::Device device);

  void take_from_first();  // collective

 private:
  World& world_;
  std::vector<at::Tensor> flat_;  // one per type
};

}  // namespace tessera
