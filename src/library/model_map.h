// A model as the library's user gave it: which module is a unit, and whether anything was changed since it was spread.
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

// The given units, with names where they had none; else a UnitModel's, a Sequential's children that have parameters, or
// none.
std::vector<Unit> choose_units(torch::nn::Module& model, const std::vector<Unit>& given);

class ModelMap {
 public:
  struct Place {
    std::string path;
    std::optional<std::size_t> unit;  // the one that it is or lies in; none: in the root
    bool is_unit = false;
  };

  // Throws UsageError where a unit is not of the model, stands twice in the list, or lies within another.
  ModelMap(torch::nn::Module& model, const std::vector<Unit>& units);

  const Place* find(const torch::nn::Module* module) const;  // nullptr: not of this model

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

  // Throws UsageError naming the first parameter that was converted, moved, frozen or thawed (some microseconds).
  void check_values() const;
  // And the first that was added, taken away or replaced: walks through the whole model.
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
