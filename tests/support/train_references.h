// The committed references of the train layer: tests/data/train/*.json.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "core/json.h"

namespace tessera {

// One list of a file. Returned by value, so a loop over it keeps it alive.
inline Json train_reference(const std::string& name, const std::string& list) {
  return read_json_file(std::string(TESSERA_TEST_DATA_FOLDER) + "/train/" + name).at(list);
}

// A double that JSON cannot hold or that must be exact, from its sixteen hexadecimal digits.
inline double double_of_bits(const std::string& hexadecimal) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::stoull(hexadecimal, nullptr, 16)));
}

}  // namespace tessera
