// The user's model: which module is a unit, and whether anything has changed since it was spread.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/unit.h"

namespace tessera {

// The given units, with names for those that have none. If empty: a UnitModel's units, a Sequential's children that
// have parameters, or none.
std::vector<Unit> choose_units(torch::nn::Module& model, const std::vector<Unit>& given);

class ModelMap {
 public:
  struct Place {
    std::string path;
    std::optional<std::size_t> unit;  // the unit that it is or is inside; none: in the root
    bool is_unit = false;
  };

  // Throws UsageError if a unit is not part of the model, is listed twice, or is inside another.
  ModelMap(torch::nn::Module& model, const std::vector<Unit>& units);

  const Place* find(const torch::nn::Module* module) const;  // nullptr: not part of this model

 private:
  void visit(const torch::nn::Module& module, const std::string& path, std::optional<std::size_t> unit);

  const std::vector<Unit>& units_;
  std::unordered_map<const torch::nn::Module*, std::size_t> unit_of_;
  std::unordered_map<const torch::nn::Module*, Place> places_;
};

// Remembers the parameters of a model that has just been spread.
class ModelWatch {
 public:
  explicit ModelWatch(const torch::nn::Module& model);

  // Throws UsageError naming the first parameter that was converted, moved, frozen or unfrozen. Takes microseconds.
  void check_values() const;
  // Also finds parameters that were added, removed or replaced: walks through the whole model.
  void check() const;

 private:
  struct Watched {
    std::string name;
    at::Tensor parameter;
    const void* storage = nullptr;
    bool requires_grad = false;
  };
  static std::vector<Watched> list(const torch::nn::Module& model);

  const torch::nn::Module& model_;
  std::vector<Watched> watched_;
};

}  // namespace tessera
