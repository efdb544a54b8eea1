// The zip archive of torch.save: data.pkl describes a value, data/0, data/1... are the storages of its tensors.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "weights/pickle.h"
#include "weights/place_tensor.h"
#include "weights/weight_entry.h"

namespace tessera {

class TorchArchive {
 public:
  // `file` is the whole archive; its directory is read, the storages are not. Both arguments must outlive it. Throws
  // UsageError naming `origin` and the record; TorchScript archives are refused by name.
  TorchArchive(std::string_view file, const std::string& origin);

  std::string_view pickle() const { return pickle_; }
  // Where a tensor of the pickle lies in the archive.
  WeightEntry place(const PickledTensor& tensor) const;

 private:
  const std::string& origin_;
  std::string_view pickle_;
  std::unordered_map<std::string, StorageBytes> storages_;
};

}  // namespace tessera
