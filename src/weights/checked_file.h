// A file of a checkpoint, whose blocks have checksums. (no torch)
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "core/file_descriptor.h"
#include "weights/checkpoint_index.h"

namespace tessera {

// Several threads may read at once.
class CheckedFile {
 public:
  // Throws UsageError if the file is missing or has another size.
  CheckedFile(const std::filesystem::path& path, const StoredFile& expected);

  bool has_checksums() const { return !expected_.checksums.empty(); }
  // Gives a block's bytes to `take` in pieces, in their order, then throws UsageError naming file and block if they are
  // damaged. A whole block is read, since only that can be checked.
  void read_block(std::int64_t block, const std::function<void(std::int64_t offset, std::string_view)>& take) const;
  // Any bytes, unchecked: for files without checksums.
  void read_bytes(std::int64_t offset, std::int64_t count, char* to) const;

 private:
  std::filesystem::path path_;
  StoredFile expected_;
  Fd descriptor_;
};

}  // namespace tessera
