// Reads a checkpoint that all ranks wrote: any range of any tensor, and every byte checked before it is used. One of
// another program has no checksums; its sizes are checked. (no torch)
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weights/checkpoint_index.h"

namespace tessera {

// A file with known checksums. Reads whole blocks, since only these can be checked, and keeps the last one. Without
// checksums it reads just what is asked for.
class CheckedFile {
 public:
  // Throws UsageError if the file is missing or has another size.
  CheckedFile(const std::filesystem::path& path, const StoredFile& expected);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;
  CheckedFile& operator=(const CheckedFile&) = delete;

  // Throws UsageError naming the file and the damaged block.
  void read(std::int64_t offset, std::int64_t count, char* to);
  void verify(std::int64_t block);
  void free_block();

 private:
  void load(std::int64_t block);
  void read_at(std::int64_t offset, std::int64_t count, char* to) const;

  std::filesystem::path path_;
  StoredFile expected_;
  int descriptor_ = -1;
  std::vector<char> block_;
  std::int64_t loaded_ = -1;  // which block
};

class CheckpointReader {
 public:
  // Reads and checks the index. Throws UsageError.
  explicit CheckpointReader(std::filesystem::path folder);
  // Of another program's checkpoint (foreign/foreign_checkpoint.h); `index` is checked.
  CheckpointReader(std::filesystem::path folder, CheckpointIndex index);
  static bool is_checkpoint(const std::filesystem::path& folder);  // has an index

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointIndex& index() const { return index_; }

  // Elements [begin, end) of a tensor, which the index has, in the tensor's type.
  void read(const StoredTensor& tensor, std::int64_t begin, std::int64_t end, char* to);
  std::string text_of(const std::string& file);  // a small file, whole

  // Every file is there and has its size. Throws UsageError naming the first that has not.
  void check_sizes();
  // Reads every num_ranks-th block of all files: ranks share the work.
  void verify(int rank, int num_ranks);

 private:
  CheckedFile& file(const std::string& name);

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::unordered_map<std::string, std::unique_ptr<CheckedFile>> files_;
  CheckedFile* last_ = nullptr;  // used: the only one that holds a block
};

}  // namespace tessera
