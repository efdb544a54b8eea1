// Tensors of weight files as libtorch tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "weights/weights.h"

namespace tessera {

at::ScalarType scalar_type(WeightType type);
WeightType weight_type(at::ScalarType type);  // throws Error for types that no weight file holds (complex, quantised)

// A view of the mapped file: nothing is read until its elements are. It keeps its file mapped, even beyond the Weights.
// For reading only; writes stay in this process. (A copy if the file's data is not aligned.)
at::Tensor tensor_of(const Weights& weights, const WeightEntry& entry);
// Throws UsageError with the nearest name if there is no such tensor.
at::Tensor tensor_of(const Weights& weights, std::string_view name);

}  // namespace tessera
