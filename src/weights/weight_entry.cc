#include "weights/weight_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tessera {

bool WeightEntry::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return numel == 0;
    expected *= shape[i];
  }
  return true;
}

std::optional<std::int64_t> checked_numel(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; })) return std::nullopt;
  // An empty tensor's other sizes may be anything.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) {
    if (size > kMost / numel) return std::nullopt;
    numel *= size;
  }
  return numel;
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    // As torch does for empty tensors: a size of 0 counts as 1. Sizes beside a 0 may be anything, so they must not
    // overflow.
    if (__builtin_mul_overflow(strides[i], std::max<std::int64_t>(shape[i], 1), &strides[i - 1])) strides[i - 1] = 1;
  }
  return strides;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace tessera
