// The element types of weight files, with the names each format uses for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// "FloatStorage": torch's class in pickles; nothing for types that torch pickles another way.
std::optional<std::string_view> storage_name(WeightType type);
std::optional<WeightType> type_of_storage_name(std::string_view name);

// "float32": config.json's torch_dtype and what people read.
std::string_view torch_name(WeightType type);

}  // namespace tessera
