// A W&B run file (run-<id>.wandb): records of Protocol Buffers in blocks, in LevelDB's log format with zlib's checksum.
//
// Seven bytes of header (":W&B", 0xBEE1, version 0), then blocks of 32 KiB. A record is checksum (of type and data),
// length, type and data; one that does not fit in the rest of a block continues in the next. When append() returns, the
// record has been handed to the system, so that a killed run can be synchronised up to there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/append_file.h"

namespace tessera {

class WandbFile {
 public:
  explicit WandbFile(const std::filesystem::path& path);

  void append(std::string_view record);
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
  std::uint64_t num_bytes_ = 0;
};

}  // namespace tessera
