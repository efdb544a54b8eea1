#include "library/model_map.h"

#include <fmt/format.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>

#include "core/error.h"

namespace tessera {
namespace {

// The module's path, or nothing. Does not use named_modules(), which needs every module to be held by a shared_ptr.
std::optional<std::string> path_of(const torch::nn::Module& model, const torch::nn::Module* wanted) {
  for (const auto& child : model.named_children()) {
    if (child.value().get() == wanted) return child.key();
    if (const auto deeper = path_of(*child.value(), wanted)) return child.key() + "." + *deeper;
  }
  return std::nullopt;
}

std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

UsageError changed(const std::string& parameter, const std::string& how) {
  return UsageError(fmt::format(
      "parameter '{}' was {} after the model was sharded: change the model before creating tessera::Sharded", parameter,
      how));
}

}  // namespace

std::vector<Unit> choose_units(torch::nn::Module& model, const std::vector<Unit>& given) {
  std::vector<Unit> units = given;
  if (units.empty()) {
    if (const auto* own = dynamic_cast<const UnitModel*>(&model)) return own->units();
    if (dynamic_cast<const torch::nn::SequentialImpl*>(&model) == nullptr) return {};
    for (const auto& child : model.named_children()) {
      if (child.value()->parameters().empty()) continue;
      units.push_back({child.key(), child.value()->name(), child.value().get()});
    }
  }
  for (Unit& unit : units) {
    if (unit.module == nullptr) throw UsageError(fmt::format("unit '{}' has no module", unit.name));
    if (unit.name.empty()) unit.name = path_of(model, unit.module).value_or("");
  }
  return units;
}

ModelMap::ModelMap(torch::nn::Module& model, const std::vector<Unit>& units) : units_(units) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!unit_of_.emplace(units[i].module, i).second) {
      throw UsageError(fmt::format("unit '{}' is listed twice in the units", units[i].name));
    }
  }
  visit(model, {}, std::nullopt);
  for (const Unit& unit : units) {
    if (places_.contains(unit.module)) continue;
    throw UsageError(
        fmt::format("unit '{}' ({}) is not a submodule of the model ({}): register it with register_module()",
                    unit.name, unit.module->name(), model.name()));
  }
}

void ModelMap::visit(const torch::nn::Module& module, const std::string& path, std::optional<std::size_t> unit) {
  const auto own = unit_of_.find(&module);
  const bool is_unit = own != unit_of_.end();
  if (is_unit && unit && *unit != own->second) {
    throw UsageError(fmt::format("unit '{}' is inside unit '{}': a parameter can belong to one unit only",
                                 units_[own->second].name, units_[*unit].name));
  }
  if (is_unit) unit = own->second;
  const auto [place, is_new] = places_.try_emplace(&module, Place{path, unit, is_unit});
  // A module in two units belongs to the root.
  if (!is_new && place->second.unit != unit) place->second.unit.reset();
  for (const auto& child : module.named_children()) visit(*child.value(), join_path(path, child.key()), unit);
}

const ModelMap::Place* ModelMap::find(const torch::nn::Module* module) const {
  const auto found = places_.find(module);
  return found == places_.end() ? nullptr : &found->second;
}

ModelWatch::ModelWatch(const torch::nn::Module& model) : model_(model), watched_(list(model)) {}

std::vector<ModelWatch::Watched> ModelWatch::list(const torch::nn::Module& model) {
  std::vector<Watched> parameters;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& parameter = item.value();
    parameters.push_back(
        {item.key(), parameter, parameter.storage().unsafeGetStorageImpl(), parameter.requires_grad()});
  }
  return parameters;
}

void ModelWatch::check_values() const {
  for (const Watched& watched : watched_) {
    const at::Tensor& parameter = watched.parameter;
    if (parameter.requires_grad() != watched.requires_grad) {
      throw changed(watched.name, watched.requires_grad ? "frozen" : "unfrozen");
    }
    if (parameter.storage().unsafeGetStorageImpl() != watched.storage) {
      throw changed(watched.name, "converted, moved or given other data");
    }
  }
}

void ModelWatch::check() const {
  check_values();
  const std::vector<Watched> now = list(model_);
  for (std::size_t i = 0; i < std::max(now.size(), watched_.size()); ++i) {
    if (i == now.size()) throw changed(watched_[i].name, "removed");
    if (i == watched_.size()) throw changed(now[i].name, "added");
    if (now[i].name == watched_[i].name && now[i].parameter.is_same(watched_[i].parameter)) continue;
    if (now[i].name == watched_[i].name) throw changed(now[i].name, "replaced by another tensor");
    const bool is_known = std::any_of(watched_.begin(), watched_.end(),
                                      [&](const Watched& watched) { return watched.name == now[i].name; });
    throw is_known ? changed(watched_[i].name, "removed") : changed(now[i].name, "added");
  }
}

}  // namespace tessera
