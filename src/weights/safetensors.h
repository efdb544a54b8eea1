// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without gaps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_entry.h"

namespace tessera {

struct SafetensorsHeader {
  std::vector<WeightEntry> entries;             // in the order of their data
  std::map<std::string, std::string> metadata;  // "format": "pt"
};

// `file` is the whole file; only its header is read. As strict as the original: the tensors cover the rest of the file
// without a gap or an overlap. Throws UsageError naming `origin` (the file's path) and the tensor.
SafetensorsHeader parse_safetensors(std::string_view file, const std::string& origin);

// The bytes before the data of `entries` (name, type and shape matter; data in this order, without gaps), padded so
// that the data begins at a multiple of 64 bytes (the original uses 8).
std::string compose_safetensors_header(const std::vector<WeightEntry>& entries,
                                       const std::map<std::string, std::string>& metadata);

}  // namespace tessera
