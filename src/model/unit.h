// The one seam between a model and whatever spreads it.
//
// A model is a root (embedding, last norm, head) and a list of units, its repeated blocks, that it runs one after
// another through a UnitRunner. The default runner only calls the body. Activation checkpointing is another runner; the
// parallel engine is a third, which gathers a unit's parameters before the body and releases them after it. Runners
// wrap each other, and no model knows which it got.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <vector>

namespace tessera {

struct Unit {
  std::string name;           // its path in the model, "transformer.h.3"
  std::string kind;           // its class by its Hugging Face or torch name, "BloomBlock"
  torch::nn::Module* module;  // owned by the model; every parameter of the unit is in it
};

class UnitRunner {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  virtual ~UnitRunner() = default;
  // Called once a unit a forward pass, in the order of the model's list. `body` must only use the unit's own parameters
  // and what it captured; it may be called again during backward.
  virtual at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) {
    (void)unit;
    return body(input);
  }
};

// What every model tells of itself.
class UnitModel : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  virtual const std::vector<Unit>& units() const = 0;
};

}  // namespace tessera
