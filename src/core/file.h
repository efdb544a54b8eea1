// Files: whole ones read and written, large ones written piece by piece, growing ones, and their descriptors. A write
// of a whole file is atomic: readers see the old file or the new one, never a part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// A pipe; throws Error.
struct Pipe {
  Pipe();
  Fd read_end, write_end;
};

// All of it; false, with errno, if that fails. Where the descriptor does not block, waits for its reader: at most
// `patience_ms` at a time, -1: for ever.
bool write_all(int fd, std::string_view bytes, int patience_ms = -1);

// No where nobody can tell, too.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);  // a regular one

// Throws UsageError naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);
// For files of /proc and /sys, which may go or refuse at any moment: what can be read, a little more than `most_bytes`
// at most; empty: nothing.
std::string read_if_possible(const std::filesystem::path& path, std::size_t most_bytes = std::string::npos);

// Writes beside the target, flushes to disk, renames, flushes the folder. A new file has mode 0644 less the umask, an
// old one keeps its mode; a link stays a link. Throws Error with path and reason; then the old file is untouched and
// nothing is left beside it. The one exception is a folder that cannot be flushed: the new file is then in place, and
// the message says so.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Makes the renames within `folder` survive a power cut. Throws Error.
void flush_folder(const std::filesystem::path& folder);

// Compressed as gzip does it; whole or not at all, like write_file_atomically. Throws Error naming the file.
void write_gzip_file(const std::filesystem::path& path, std::string_view content);

// The checksum of zip records and of W&B's files. Continues `so_far`, the checksum of the bytes before these; 0 to
// start.
std::uint32_t crc32(std::string_view bytes, std::uint32_t so_far = 0);

// A large file written piece by piece that appears under its name only when complete.
//
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
  Fd descriptor_;
  std::uint64_t num_written_ = 0;
  std::uint64_t num_sent_ = 0;  // of them, those that the disk was asked to begin with
};

// Whether a killed process left it: a temporary file of an OutputFile, and no process of this host has that number.
bool is_left_behind(const std::filesystem::path& file);

// A file that grows record by record. When append() returns, the record has been handed to the system.
class AppendFile {
 public:
  enum class Mode { kNew, kReplace, kContinue };  // kNew: refused if the file exists

  // Creates the parent folders. Throws Error with path and reason, as does append().
  AppendFile(std::filesystem::path path, Mode mode);

  // A partly written record is removed again, so that later records can be read.
  void append(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(int error_number) const;

  std::filesystem::path path_;
  Fd descriptor_;
};

}  // namespace tessera
