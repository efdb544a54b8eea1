// Converts a tensor as a pickle describes it to a place in the file.
#pragma once

#include <cstdint>
#include <string>

#include "weights/pickle.h"
#include "weights/weight_entry.h"

namespace tessera {

constexpr std::uint64_t kMaxPickleBytes = 64 << 20;  // a state dict of 100,000 tensors takes 20 MB

struct StorageBytes {
  std::uint64_t offset_bytes = 0;  // from the file's start
  std::uint64_t num_bytes = 0;
};

// `storage` is what the tensor's key refers to, nullptr if the file has none. Throws UsageError naming `origin` and the
// tensor unless every element lies in the storage.
WeightEntry place_tensor(const PickledTensor& tensor, const StorageBytes* storage, const std::string& origin);

}  // namespace tessera
