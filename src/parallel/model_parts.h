// The parts of a model that an engine handles: which modules are units, which parameters each holds, and the buffers.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "parallel/flat_unit.h"
#include "tessera/unit.h"
#include "tessera/world.h"

namespace tessera {

// Which of the units that a model lists are spread.
struct UnitRule {
  // Class names ("BloomBlock", "TransformerEncoderLayer", dotted ones too: the last word counts); empty: any.
  std::vector<std::string> kinds{};
  // Units with fewer parameters than this stay with the root.
  std::int64_t min_num_parameters = 0;
};

// The model's units that the rule picks, in their order. Throws UsageError if the model has no units of a class, naming
// the classes that it has.
std::vector<Unit> select_units(const std::vector<Unit>& units, const UnitRule& rule);

// Each parameter once, under its first name: in the unit that holds it, or in the root (which comes last) if no unit or
// several hold it. `is_exempt_from_decay` may be empty: none is exempt.
std::vector<std::vector<UnitParameter>> divide(torch::nn::Module& model, const std::vector<Unit>& units,
                                               const std::function<bool(const std::string&)>& is_exempt_from_decay);

// Batch-norm statistics and the like: never split. Before a step every rank takes rank 0's, as in
// DistributedDataParallel.
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
