// A large file written piece by piece that appears under its name only when complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tessera {

// Writes to a temporary file beside the target; become_target() flushes it to disk, renames it and flushes the folder.
// If destroyed before that, it leaves nothing. A target that is a link stays one, an old file keeps its mode; a new one
// has 0644 less the umask. Throws Error with path and reason, UsageError where the target is something else than a
// file.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& target);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  std::uint64_t num_written() const { return num_written_; }
  void become_target();

 private:
  void begin_writeback();
  [[noreturn]] void fail(int error) const;

  std::filesystem::path target_, path_;
  int descriptor_ = -1;
  std::uint64_t num_written_ = 0;
  std::uint64_t num_sent_ = 0;  // of them, those that the disk was asked to begin with
};

// Whether a killed process left it: a temporary file of an OutputFile, and no process of this host has that number.
bool is_left_behind(const std::filesystem::path& file);

}  // namespace tessera
