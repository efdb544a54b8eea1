#include "parallel/unit_division.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "core/error.h"

namespace tessera {

std::vector<std::vector<UnitParameter>> divide(torch::nn::Module& model, const std::vector<Unit>& units,
                                               const std::function<bool(const std::string&)>& is_exempt_from_decay) {
  std::unordered_map<const c10::TensorImpl*, std::size_t> holder;
  const std::size_t root = units.size();
  for (std::size_t index = 0; index < units.size(); ++index) {
    std::unordered_set<const c10::TensorImpl*> own;
    for (const at::Tensor& parameter : units[index].module->parameters()) {
      const c10::TensorImpl* impl = parameter.unsafeGetTensorImpl();
      if (!own.insert(impl).second) continue;
      const auto [place, is_new] = holder.emplace(impl, index);
      if (!is_new) place->second = root;
    }
  }
  const auto group_of = [&](const std::string& name, const at::Tensor& parameter) {
    if (!parameter.requires_grad()) return ParameterGroup::kFrozen;
    return is_exempt_from_decay && is_exempt_from_decay(name) ? ParameterGroup::kPlain : ParameterGroup::kDecaying;
  };
  std::vector<std::vector<UnitParameter>> of_unit(units.size() + 1);
  std::unordered_set<const c10::TensorImpl*> taken;
  for (const auto& item : model.named_parameters()) {
    const c10::TensorImpl* impl = item.value().unsafeGetTensorImpl();
    if (!taken.insert(impl).second) continue;
    const at::ScalarType type = item.value().scalar_type();
    if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16) {
      throw Error(
          fmt::format("parameter {} is {}: the engine spreads float32, float16 and bfloat16; make it a buffer, or "
                      "convert it",
                      item.key(), c10::toString(type)));
    }
    const auto found = holder.find(impl);
    of_unit[found == holder.end() ? root : found->second].push_back(
        {item.key(), item.value(), group_of(item.key(), item.value())});
  }
  return of_unit;
}

}  // namespace tessera
