// A tensor of a weight file: its element type, with the names each format uses for it, its shape and its place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class WeightType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF8E4M3,
  kF8E5M2,
  kF16,
  kBF16,
  kF32,
  kF64,
};

std::int64_t bytes_of(WeightType type);
bool is_floating(WeightType type);

// "F32": safetensors' own.
std::string_view safetensors_name(WeightType type);
std::optional<WeightType> type_of_safetensors_name(std::string_view name);
std::string safetensors_names();  // all of them, for messages

// "FloatStorage": torch's class in pickles; empty for types that torch pickles another way.
std::string_view storage_name(WeightType type);
std::optional<WeightType> type_of_storage_name(std::string_view name);

// "float32": config.json's torch_dtype and what people read.
std::string_view torch_name(WeightType type);

// One tensor of a weight file, as the file's header describes it; its data is not touched.
//
// It has been checked when it is made: sizes are not negative, nothing overflows, every element lies in the file, and
// it has no more elements than its storage (so a copy of it is never larger than the file).

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

// A number of up to 8 bytes, as weight files have it.
std::uint64_t little_endian(std::string_view bytes);
std::string little_endian(std::uint64_t value, int num_bytes);

}  // namespace tessera
