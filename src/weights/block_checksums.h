// Checksums of large files, one per block: a reader of a part checks the blocks that it touches. (no torch)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

inline constexpr std::int64_t kChecksumBlock = std::int64_t{16} << 20;  // bytes; the last block may be shorter

// XXH3-128 by the xxHash library, as 32 hexadecimal digits: against accidents, at the speed of memory.
std::string checksum_of(std::string_view bytes);

// The checksums of a file's blocks, while it is written piece by piece.
class BlockChecksums {
 public:
  BlockChecksums();
  ~BlockChecksums();
  void add(std::string_view bytes);
  std::vector<std::string> finish();

 private:
  struct Running;
  void end_block();

  std::unique_ptr<Running> running_;
  std::int64_t in_block_ = 0;
  std::vector<std::string> finished_;
};

}  // namespace tessera
