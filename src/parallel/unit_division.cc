#include "parallel/unit_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"

namespace tessera {
namespace {

struct Extent {
  const void* storage;
  std::int64_t begin, end;  // elements of it
  std::string name;
};

// Tied parameters must be one tensor object. Two objects over the same memory would each get their own place and
// silently diverge.
void refuse_common_memory(const torch::OrderedDict<std::string, at::Tensor>& parameters) {
  std::vector<Extent> extents;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : parameters) {
    const at::Tensor& tensor = item.value();
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second || tensor.is_meta() || tensor.numel() == 0) continue;
    std::int64_t last = tensor.storage_offset();
    for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    extents.push_back({tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), last + 1, item.key()});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.storage, a.begin) < std::tie(b.storage, b.begin);
  });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    const Extent &before = extents[i - 1], &here = extents[i];
    if (before.storage != here.storage || before.end <= here.begin) continue;
    throw UsageError(fmt::format(
        "parameters {} and {} share memory but are two tensors: to tie them, register one tensor under both "
        "names",
        before.name, here.name));
  }
}

}  // namespace

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
  const auto named = model.named_parameters();
  refuse_common_memory(named);
  std::vector<std::vector<UnitParameter>> of_unit(units.size() + 1);
  std::unordered_set<const c10::TensorImpl*> taken;
  for (const auto& item : named) {
    const c10::TensorImpl* impl = item.value().unsafeGetTensorImpl();
    if (!taken.insert(impl).second) continue;
    const at::ScalarType type = item.value().scalar_type();
    if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16) {
      throw Error(
          fmt::format("parameter {} is {}, but the engine spreads only float32, float16 and bfloat16: convert it, or "
                      "make it a buffer",
                      item.key(), c10::toString(type)));
    }
    const auto found = holder.find(impl);
    of_unit[found == holder.end() ? root : found->second].push_back(
        {item.key(), item.value(), group_of(item.key(), item.value())});
  }
  return of_unit;
}

}  // namespace tessera
