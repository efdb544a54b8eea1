// The interface between a model and whatever spreads it over ranks.
//
// A model is a root (embedding, last norm, head) and a list of units, its repeated blocks, that it runs one after
// another through a UnitRunner. The default runner only calls the body. Activation checkpointing is another runner; the
// parallel engine is a third, which gathers a unit's parameters before the body and releases them after it. Runners
// wrap each other, and a model does not know which one it has.
//
// Your own model takes the runner in its forward, and works with and without Tessera:
//
//   at::Tensor forward(at::Tensor x, tessera::UnitRunner& runner) {
//     for (auto& block : blocks) x = runner.run(block, x);  // instead of x = block->forward(x)
//     return head(x);
//   }
#pragma once

#include <c10/util/Type.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tessera {

struct Unit {
  std::string name;           // its path in the model: "transformer.h.3"
  std::string kind;           // its class, by its Hugging Face or torch name: "BloomBlock"
  torch::nn::Module* module;  // owned by the model; every parameter of the unit is in it
};

// Writes the values that a parameter starts with, in float32, into a tensor of its shape.
using ParameterSource = std::function<void(const std::string& name, at::Tensor values)>;

namespace internal {

template <typename T>
concept ModuleObject = std::derived_from<std::remove_cvref_t<T>, torch::nn::Module>;
// std::shared_ptr<MyBlockImpl>, or the holder that TORCH_MODULE(MyBlock) makes.
template <typename T>
concept ModulePointer = !ModuleObject<T> && requires(T & pointer) {
  { *pointer } -> ModuleObject;
};

template <typename T>
concept ModuleLike = ModuleObject<T> || ModulePointer<T>;

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
  // Called once per unit in each forward pass, in the order of the model's list. `body` must only use the unit's own
  // parameters and what it captured; it may be called again during backward. Its input and output must not be
  // modified in place outside it.
  virtual at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) {
    (void)unit;
    return body(input);
  }

  // The same for a block: a module, a shared_ptr to one, or a TORCH_MODULE holder. Without a body, runs the block's
  // forward(input).
  template <internal::ModuleLike Block>
  at::Tensor run(Block& block, const at::Tensor& input, const Body& body) {
    return run(Unit{{}, {}, &internal::module_of(block)}, input, body);
  }
  template <internal::ModuleLike Block>
  at::Tensor run(Block& block, const at::Tensor& input) {
    auto& module = internal::module_of(block);
    return run(Unit{{}, {}, &module}, input, [&module](const at::Tensor& x) { return module.forward(x); });
  }
};

// A model that lists its units: every model of Tessera's, and your own if you like.
class UnitModel : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  virtual const std::vector<Unit>& units() const = 0;
};

namespace internal {

template <typename T>
struct ModuleClass {
  using type = T;
};
template <ModulePointer T>
struct ModuleClass<T> {
  using type = std::remove_cvref_t<decltype(*std::declval<T&>())>;
};

template <typename Block>
void collect_units(const torch::nn::Module& model, const std::string& path, std::vector<Unit>& units) {
  for (const auto& child : model.named_children()) {
    const std::string name = path.empty() ? child.key() : path + "." + child.key();
    if (auto* block = dynamic_cast<Block*>(child.value().get())) {
      units.push_back({name, child.value()->name(), block});
    } else {
      collect_units<Block>(*child.value(), name, units);
    }
  }
}

}  // namespace internal

// Every submodule of class Block (or of a TORCH_MODULE holder's class) as a unit, in the order of registration. Does
// not look inside a unit. Throws std::runtime_error if there is none.
template <typename Block>
std::vector<Unit> units_of(const torch::nn::Module& model) {
  using Class = typename internal::ModuleClass<Block>::type;
  static_assert(std::derived_from<Class, torch::nn::Module>, "units_of<Block>: Block must be a torch::nn::Module");
  std::vector<Unit> units;
  internal::collect_units<Class>(model, {}, units);
  if (units.empty()) {
    throw std::runtime_error("units_of: the model (" + model.name() + ") has no submodule of class " +
                             c10::demangle(typeid(Class).name()));
  }
  return units;
}

}  // namespace tessera
