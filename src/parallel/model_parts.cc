#include "parallel/model_parts.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

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

std::vector<Unit> select_units(const std::vector<Unit>& units, const UnitRule& rule) {
  std::set<std::string> there;
  for (const Unit& unit : units) there.insert(last_word(unit.kind));
  check_kinds(rule, there);
  std::vector<Unit> selected;
  std::copy_if(units.begin(), units.end(), std::back_inserter(selected),
               [&](const Unit& unit) { return picks(rule, unit.kind, *unit.module); });
  return selected;
}

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

ModuleBuffers::ModuleBuffers(World& world, torch::nn::Module& model, at::Device device) : world_(world) {
  const at::NoGradGuard no_gradients;
  std::map<at::ScalarType, std::vector<at::Tensor>> of_type;
  std::unordered_set<const c10::TensorImpl*> taken;
  for (const auto& item : model.named_buffers()) {
    const at::Tensor& buffer = item.value();
    if (!buffer.defined() || !taken.insert(buffer.unsafeGetTensorImpl()).second) continue;
    if (buffer.is_meta()) {
      throw UsageError(
          fmt::format("buffer {} is on the meta device and has no values: create it on a real device", item.key()));
    }
    of_type[buffer.scalar_type()].push_back(buffer);
  }
  for (auto& [type, buffers] : of_type) {
    std::int64_t numel = 0;
    for (const at::Tensor& buffer : buffers) numel += buffer.numel();
    const at::Tensor flat = flat_.emplace_back(at::empty({numel}, at::dtype(type).device(device)));
    std::int64_t offset = 0;
    for (at::Tensor& buffer : buffers) {
      const at::Tensor view = flat.narrow(0, offset, buffer.numel()).view(buffer.sizes());
      view.copy_(buffer);
      buffer.set_data(view.variable_data());
      offset += buffer.numel();
    }
  }
}

// Sent as bytes, whatever the type.
void ModuleBuffers::take_from_first() {
  if (world_.size() == 1) return;
  for (const at::Tensor& flat : flat_) {
    if (flat.numel() > 0) world_.all().broadcast(flat.view(at::kByte), 0, "buffers")->wait();
  }
}

}  // namespace tessera
