// What torch.save writes (pytorch_model.bin, torchvision's .pth): a zip archive in which data.pkl describes a value and
// data/0, data/1... are the storages of its tensors; or the format from before torch 1.6.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weights/pickle.h"
#include "weights/weight_entry.h"
#include "weights/zip.h"

namespace tessera {

constexpr std::uint64_t kMaxPickleBytes = 64 << 20;  // a state dict of 100,000 tensors takes 20 MB

// The tensors of a file that holds a state dict. `file` is the whole file; its directory and pickle are read, the
// storages are not. Entries are in the order of the state dict; two of them may be the same data (tied weights). Throws
// UsageError naming `origin` and the record or tensor; TorchScript archives are refused by name.
std::vector<WeightEntry> parse_torch_file(std::string_view file, const std::string& origin);

struct StorageBytes {
  std::uint64_t offset_bytes = 0;  // from the file's start
  std::uint64_t num_bytes = 0;
};
using Storages = std::unordered_map<std::string_view, StorageBytes>;  // by key

// An archive with any value.
class TorchArchive {
 public:
  // As parse_torch_file(). Both arguments must outlive it.
  TorchArchive(std::string_view file, const std::string& origin);
  TorchArchive(const TorchArchive&) = delete;
  TorchArchive& operator=(const TorchArchive&) = delete;

  std::string_view pickle() const { return pickle_; }
  const std::vector<ZipRecord>& records() const { return records_; }
  // Where a tensor of the pickle lies in the archive. Throws UsageError unless every element lies in its storage.
  WeightEntry place(const PickledTensor& tensor) const;

 private:
  const std::string& origin_;
  std::string_view pickle_;
  std::vector<ZipRecord> records_;
  Storages storages_;
};

}  // namespace tessera
