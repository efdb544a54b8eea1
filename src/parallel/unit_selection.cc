#include "parallel/unit_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

// The class itself: of "transformers.models.bloom.BloomBlock", "torch::nn::LinearImpl" and the like.
std::string last_word(const std::string& name) {
  const std::size_t at = name.find_last_of(".:");
  std::string word = at == std::string::npos ? name : name.substr(at + 1);
  constexpr std::string_view kSuffix = "Impl";
  if (word.size() > kSuffix.size() && word.ends_with(kSuffix)) word.resize(word.size() - kSuffix.size());
  return word;
}

std::int64_t num_parameters(const torch::nn::Module& module) {
  std::int64_t number = 0;
  for (const at::Tensor& parameter : module.parameters()) number += parameter.numel();
  return number;
}

bool picks(const UnitRule& rule, const std::string& kind, const torch::nn::Module& module) {
  const auto is_kind = [&](const std::string& wanted) { return last_word(wanted) == last_word(kind); };
  if (!rule.kinds.empty() && std::none_of(rule.kinds.begin(), rule.kinds.end(), is_kind)) return false;
  return num_parameters(module) >= rule.min_num_parameters;
}

void check_kinds(const UnitRule& rule, const std::set<std::string>& there) {
  for (const std::string& wanted : rule.kinds) {
    if (there.contains(last_word(wanted))) continue;
    throw UsageError(fmt::format("the model has no units of class '{}'; its classes: {}", wanted,
                                 there.empty() ? "none" : join({there.begin(), there.end()}, ", ")));
  }
}

}  // namespace

std::vector<Unit> select_units(const std::vector<Unit>& units, const UnitRule& rule) {
  std::set<std::string> there;
  for (const Unit& unit : units) there.insert(last_word(unit.kind));
  check_kinds(rule, there);
  std::vector<Unit> selected;
  std::copy_if(units.begin(), units.end(), std::back_inserter(selected),
               [&](const Unit& unit) { return picks(rule, unit.kind, *unit.module); });
  return selected;
}

}  // namespace tessera
