// torch.save's format from before torch 1.6, which many older published weights still use: five consecutive pickles (a
// magic number, a version, a description of the machine, the state dict, the keys of the storages), then the storages
// in the order of those keys, each as its number of elements in 8 bytes and its data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_entry.h"

namespace tessera {

bool is_legacy_torch_file(std::string_view file);

// As parse_torch_file(), which calls it.
std::vector<WeightEntry> parse_legacy_torch_file(std::string_view file, const std::string& origin);

}  // namespace tessera
