// One tensor of a weight file, as the file's header describes it; its data is not touched.
//
// It has been checked when it is made: sizes are not negative, nothing overflows, every element lies in the file, and
// it has no more elements than its storage (so a copy of it is never larger than the file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weights/weight_type.h"

namespace tessera {

struct WeightEntry {
  std::string name;
  WeightType type = WeightType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t numel = 0;
  std::int64_t offset_bytes = 0;  // of the first element, from the file's start
  std::size_t file = 0;           // index into the list of files it came with

  std::int64_t num_bytes() const { return numel * bytes_of(type); }
  bool is_contiguous() const;
};

// The product, or nothing if a size is negative or the product exceeds 2^62.
std::optional<std::int64_t> checked_numel(const std::vector<std::int64_t>& shape);
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape);
std::string shape_text(const std::vector<std::int64_t>& shape);  // "[1024, 4096]"

}  // namespace tessera
