// A file of a checkpoint: every byte is checked before it is used. (no torch)
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "weights/checkpoint_index.h"

namespace tessera {

// Several threads may read at once.
class CheckedFile {
 public:
  // Throws UsageError if the file is missing or has another size.
  CheckedFile(const std::filesystem::path& path, const StoredFile& expected);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;
  CheckedFile& operator=(const CheckedFile&) = delete;

  bool has_checksums() const { return !expected_.checksums.empty(); }
  std::int64_t bytes_of_block(std::int64_t block) const;
  // A whole block, since only these can be checked. Throws UsageError naming the file and the damaged block.
  void read_block(std::int64_t block, char* to) const;
  // Any bytes, unchecked: for files without checksums.
  void read_bytes(std::int64_t offset, std::int64_t count, char* to) const;

 private:
  std::filesystem::path path_;
  StoredFile expected_;
  int descriptor_ = -1;
};

}  // namespace tessera
