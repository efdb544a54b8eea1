#include "weights/weight_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/text.h"

namespace tessera {

namespace {

struct Row {
  WeightType type;
  std::int64_t bytes;
  bool floating;
  std::string_view safetensors, storage, torch;
};

// In the order of the enumeration. No storage name: torch pickles that type without its own storage class.
constexpr std::array<Row, 15> kRows = {{
    {WeightType::kBool, 1, false, "BOOL", "BoolStorage", "bool"},
    {WeightType::kU8, 1, false, "U8", "ByteStorage", "uint8"},
    {WeightType::kI8, 1, false, "I8", "CharStorage", "int8"},
    {WeightType::kI16, 2, false, "I16", "ShortStorage", "int16"},
    {WeightType::kU16, 2, false, "U16", "", "uint16"},
    {WeightType::kI32, 4, false, "I32", "IntStorage", "int32"},
    {WeightType::kU32, 4, false, "U32", "", "uint32"},
    {WeightType::kI64, 8, false, "I64", "LongStorage", "int64"},
    {WeightType::kU64, 8, false, "U64", "", "uint64"},
    {WeightType::kF8E4M3, 1, true, "F8_E4M3", "", "float8_e4m3fn"},
    {WeightType::kF8E5M2, 1, true, "F8_E5M2", "", "float8_e5m2"},
    {WeightType::kF16, 2, true, "F16", "HalfStorage", "float16"},
    {WeightType::kBF16, 2, true, "BF16", "BFloat16Storage", "bfloat16"},
    {WeightType::kF32, 4, true, "F32", "FloatStorage", "float32"},
    {WeightType::kF64, 8, true, "F64", "DoubleStorage", "float64"},
}};

const Row& row(WeightType type) {
  return kRows[static_cast<std::size_t>(type)];
}

std::optional<WeightType> type_named(std::string_view name, std::string_view Row::*names) {
  for (const Row& each : kRows) {
    if (each.*names == name && !name.empty()) return each.type;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t bytes_of(WeightType type) {
  return row(type).bytes;
}

bool is_floating(WeightType type) {
  return row(type).floating;
}

std::string_view safetensors_name(WeightType type) {
  return row(type).safetensors;
}

std::optional<WeightType> type_of_safetensors_name(std::string_view name) {
  return type_named(name, &Row::safetensors);
}

std::string safetensors_names() {
  std::vector<std::string> names;
  for (const Row& each : kRows) names.emplace_back(each.safetensors);
  return join(names, ", ");
}

std::string_view storage_name(WeightType type) {
  return row(type).storage;
}

std::optional<WeightType> type_of_storage_name(std::string_view name) {
  return type_named(name, &Row::storage);
}

std::string_view torch_name(WeightType type) {
  return row(type).torch;
}

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

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string little_endian(std::uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace tessera
