#include "weights/weight_tensors.h"

#include <ATen/Functions.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::pair<WeightType, at::ScalarType> kTypes[] = {
    {WeightType::kBool, at::kBool},
    {WeightType::kU8, at::kByte},
    {WeightType::kI8, at::kChar},
    {WeightType::kI16, at::kShort},
    {WeightType::kU16, at::kUInt16},
    {WeightType::kI32, at::kInt},
    {WeightType::kU32, at::kUInt32},
    {WeightType::kI64, at::kLong},
    {WeightType::kU64, at::kUInt64},
    {WeightType::kF8E4M3, at::kFloat8_e4m3fn},
    {WeightType::kF8E5M2, at::kFloat8_e5m2},
    {WeightType::kF16, at::kHalf},
    {WeightType::kBF16, at::kBFloat16},
    {WeightType::kF32, at::kFloat},
    {WeightType::kF64, at::kDouble},
};

}  // namespace

at::ScalarType scalar_type(WeightType type) {
  for (const auto& [weight, scalar] : kTypes) {
    if (weight == type) return scalar;
  }
  throw Error("a weight type without a scalar type");
}

WeightType weight_type(at::ScalarType type) {
  for (const auto& [weight, scalar] : kTypes) {
    if (scalar == type) return weight;
  }
  throw Error(fmt::format("tensors of type {} cannot be stored in a weight file", c10::toString(type)));
}

at::Tensor tensor_of(const Weights& weights, const WeightEntry& entry) {
  const auto options = at::TensorOptions().dtype(scalar_type(entry.type));
  if (entry.numel == 0) return at::empty_strided(entry.shape, entry.strides, options);
  // from_blob requires a writable pointer; the map's pages allow it.
  char* data = const_cast<char*>(weights.data(entry));
  const auto file = weights.files()[entry.file];
  at::Tensor view = at::from_blob(
      data, entry.shape, entry.strides, [file](void*) {}, options);
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % bytes_of(entry.type) == 0;
  return aligned ? view : view.clone();
}

at::Tensor tensor_of(const Weights& weights, std::string_view name) {
  if (const WeightEntry* entry = weights.find(name)) return tensor_of(weights, *entry);
  std::vector<std::string> names;
  for (const WeightEntry& entry : weights.entries()) names.push_back(entry.name);
  const auto meant = nearest(name, names);
  throw UsageError(fmt::format("{} has no tensor '{}'{}", weights.files().front()->path().string(), name,
                               meant ? fmt::format(", did you mean '{}'?", *meant) : ""));
}

}  // namespace tessera
