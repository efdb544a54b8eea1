// A module's buffers (batch-norm statistics) across ranks: never split. Before a step every rank takes rank 0's, as in
// DistributedDataParallel.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

#include "tessera/world.h"

namespace tessera {

class ModuleBuffers {
 public:
  // Moves the buffers to the device. They become views of one flat tensor per type, for one collective per type.
  ModuleBuffers(World& world, torch::nn::Module& model, at::Device device);

  void take_from_first();  // collective

 private:
  World& world_;
  std::vector<at::Tensor> flat_;  // one per type
};

}  // namespace tessera
