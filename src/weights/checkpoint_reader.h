// Reads a checkpoint that all ranks wrote: any ranges of its tensors, by all threads of the process, and every byte is
// checked. Of another program's, verify() checks the records that have checksums, and sizes are checked. (no torch)
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/file.h"
#include "weights/checkpoint_index.h"

namespace tessera {

// A file whose blocks have checksums. Several threads may read at once.
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

// Elements [begin, end) of a tensor, which the index has, in the tensor's type.
struct TensorRange {
  const StoredTensor* tensor;
  std::int64_t begin, end;
  char* to;
};

// For one caller at a time.
class CheckpointReader {
 public:
  // Reads and checks the index. Throws UsageError.
  explicit CheckpointReader(std::filesystem::path folder);
  // Of another program's checkpoint (foreign/foreign_checkpoint.h); `index` is checked.
  CheckpointReader(std::filesystem::path folder, CheckpointIndex index);
  static bool is_checkpoint(const std::filesystem::path& folder);  // has an index

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointIndex& index() const { return index_; }

  // Threads share the blocks of all ranges, and each block is read once: give many at once, to places that do not
  // overlap. Throws UsageError naming the first damaged block; then the places may hold damaged values.
  void read(const std::vector<TensorRange>& ranges);
  std::string text_of(const std::string& file);  // a small file, whole

  // Every file is there and has its size. Throws UsageError naming the first that has not.
  void check_sizes();
  // Reads every num_ranks-th block or record of all files that has a checksum: ranks share the work.
  void verify(int rank, int num_ranks);

 private:
  const CheckedFile& file(const std::string& name);

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::unordered_map<std::string, std::unique_ptr<CheckedFile>> files_;
};

}  // namespace tessera
