// Reads a checkpoint that all ranks wrote: any ranges of its tensors, by all threads of the process, and every byte
// checked before it is used. One of another program has no checksums; its sizes are checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weights/checked_file.h"
#include "weights/checkpoint_index.h"

namespace tessera {

// Elements [begin, end) of a tensor, which the index has, in the tensor's type.
struct TensorRange {
  const StoredTensor* tensor;
  std::int64_t begin, end;
  char* to;
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

  // Many ranges at once are faster: threads read blocks of all of them. Throws UsageError.
  void read(const std::vector<TensorRange>& ranges);
  std::string text_of(const std::string& file);  // a small file, whole

  // Every file is there and has its size. Throws UsageError naming the first that has not.
  void check_sizes();
  // Reads every num_ranks-th block of all files: ranks share the work.
  void verify(int rank, int num_ranks);

 private:
  // What is wanted of a block of a file.
  struct Piece {
    std::int64_t offset, count;  // in the file
    char* to;
  };
  using BlockId = std::pair<std::string, std::int64_t>;  // the file's name, which block
  using Wanted = std::map<BlockId, std::vector<Piece>>;

  const CheckedFile& file(const std::string& name);
  void want(const std::string& file, std::int64_t offset, std::int64_t count, char* to, Wanted& wanted);
  void read_wanted(const Wanted& wanted);

  std::filesystem::path folder_;
  CheckpointIndex index_;
  std::unordered_map<std::string, std::unique_ptr<CheckedFile>> files_;
  // The last block that was read in part: the next range often goes on in it.
  BlockId kept_id_{"", -1};
  std::vector<char> kept_;
};

}  // namespace tessera
