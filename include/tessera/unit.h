// The one seam between a model and whatever spreads it.
//
// A model is a root (embedding, last norm, head) and a list of units, its repeated blocks, that it runs one after
// another through a UnitRunner. The default runner only calls the body. Activation checkpointing is another runner; the
// parallel engine is a third, which gathers a unit's parameters before the body and releases them after it. Runners
// wrap each other, and no model knows which it got.
//
// A model of one's own takes the runner in its forward, and works with and without Tessera:
//
//   at::Tensor forward(at::Tensor x, tessera::UnitRunner& runner) {
//     for (auto& block : blocks) x = runner.run(block, x);  // instead of x = block->forward(x)
//     return head(x);
//   }
#pragma once

#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace tessera {

struct Unit {
  std::string name;           // its path in the model, "transformer.h.3"
  std::string kind;           // its class by its Hugging Face or torch name, "BloomBlock"
  torch::nn::Module* module;  // owned by the model; every parameter of the unit is in it
};

namespace internal {

template <typename T>
concept ModuleObject = std::derived_from<std::remove_cvref_t<T>, torch::nn::Module>;
// std::shared_ptr<MyBlockImpl>, or the holder that TORCH_MODULE(MyBlock) makes.
template <typename T>
concept ModulePointer = !ModuleObject<T> && requires(T & pointer) {
  { *pointer } -> ModuleObject;
};

template <ModuleObject T>
T& module_of(T& module) {
  return module;
}
template <ModulePointer T>
auto& module_of(T& pointer) {
  return *pointer;
}

}  // namespace internal

class UnitRunner {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  virtual ~UnitRunner() = default;
  // Called once a unit a forward pass, in the order of the model's list. `body` must only use the unit's own parameters
  // and what it captured; it may be called again during backward. What it gets and gives must not be modified in place
  // outside it.
  virtual at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) {
    (void)unit;
    return body(input);
  }

  // The same for a block by itself: a module, a shared_ptr to one, or a TORCH_MODULE holder. Without a body it is the
  // block's forward(input).
  template <typename Block>
  requires internal::ModuleObject<Block> || internal::ModulePointer<Block> at::Tensor run(Block& block,
                                                                                          const at::Tensor& input,
                                                                                          const Body& body) {
    return run(Unit{{}, {}, &internal::module_of(block)}, input, body);
  }
  template <typename Block>
  requires internal::ModuleObject<Block> || internal::ModulePointer<Block> at::Tensor run(Block& block,
                                                                                          const at::Tensor& input) {
    auto& module = internal::module_of(block);
    return run(Unit{{}, {}, &module}, input, [&module](const at::Tensor& x) { return module.forward(x); });
  }
};

// What every model of Tessera's tells of itself; one of your own may, too.
class UnitModel : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  virtual const std::vector<Unit>& units() const = 0;
};

// Every submodule of class Block in the order of registration, each a unit; what lies within one is not looked at.
template <typename Block>
std::vector<Unit> units_of(const torch::nn::Module& model, const std::string& path = {}) {
  std::vector<Unit> units;
  for (const auto& child : model.named_children()) {
    const std::string name = path.empty() ? child.key() : path + "." + child.key();
    if (auto* block = dynamic_cast<Block*>(child.value().get())) {
      units.push_back({name, child.value()->name(), block});
    } else {
      for (Unit& unit : units_of<Block>(*child.value(), name)) units.push_back(std::move(unit));
    }
  }
  return units;
}

}  // namespace tessera
