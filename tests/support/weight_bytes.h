#pragma once

#include <string_view>

#include "weights/mapped_file.h"
#include "weights/weights.h"

namespace tessera {

// As they lie in the file, while the Weights live.
inline std::string_view bytes_of(const Weights& weights, const WeightEntry& entry) {
  return weights.files()[entry.file]->bytes().substr(static_cast<std::size_t>(entry.offset_bytes),
                                                     static_cast<std::size_t>(entry.num_bytes()));
}

}  // namespace tessera
