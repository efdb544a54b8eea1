// For tests: the hashes that the scripts in tools/references/ write in place of long lists of numbers.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "data/text/content_hash.h"

namespace tessera {

// XXH64 of the numbers as stored in memory, as 16 hexadecimal digits.
template <typename Number>
std::string hash_of_numbers(std::span<const Number> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return fmt::format("{:016x}", xxh64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace tessera
