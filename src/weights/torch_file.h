// What torch.save writes (pytorch_model.bin, torchvision's .pth): a zip archive in which data.pkl describes the tensors
// and data/0, data/1... are the storages; or the format from before torch 1.6 (legacy_torch_file.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_entry.h"

namespace tessera {

// `file` is the whole file; its directory and pickle are read, the storages are not. Entries are in the order of the
// state dict; two of them may be the same data (tied weights). Throws UsageError naming `origin` and the record or
// tensor; TorchScript archives are refused by name.
std::vector<WeightEntry> parse_torch_file(std::string_view file, const std::string& origin);

}  // namespace tessera
