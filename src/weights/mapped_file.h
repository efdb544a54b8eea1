// A file in memory without reading it: pages are loaded when touched; and copies of its parts by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Whether it is the name of something in a folder, and leads nowhere else.
bool is_plain_name(const std::string& name);

// Pages written to become private to the process; the file never changes. If another process shortens the file while it
// is mapped, SIGBUS ends this process, as with every map: replace files by renaming. Safe to read from any thread.
class MappedFile {
 public:
  // Throws UsageError with the path and the system's reason.
  explicit MappedFile(const std::filesystem::path& path);
  // Memory of the process instead of a file, to be filled by memory(); `path` is what messages call it.
  MappedFile(const std::filesystem::path& path, std::size_t num_bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string_view bytes() const { return {data_, num_bytes_}; }
  char* memory() { return data_; }

  // Announces that this part is about to be read: its pages are mapped at once (Linux 5.14; before that, when touched).
  void expect(std::size_t offset, std::size_t num_bytes) const;

  // Releases the pages that lie wholly in this part of bytes() from the process's memory; touched again, they are
  // reloaded from the file. For callers that have copied the part.
  void forget(std::size_t offset, std::size_t num_bytes) const;

 private:
  std::filesystem::path path_;
  char* data_ = nullptr;
  std::size_t num_bytes_ = 0;
  bool is_file_ = true;
};

// Sees the bytes in parts, each just before it is copied, so that they come from memory once. Parts begin at multiples
// of 8 bytes from the start of the copy.
using Look = std::function<void(const char* bytes, std::int64_t num_bytes)>;

struct CopyJob {
  const MappedFile* file;
  std::int64_t offset_bytes, num_bytes;
  char* to;
  Look look{};  // called by several threads
};

// By the calling thread.
void copy_from_file(const CopyJob& job);

// By libtorch's threads; returns when everything is copied. Copied pages are released from the map at once, so that the
// memory beyond `to` stays at a few MiB per thread.
void copy_from_files(const std::vector<CopyJob>& jobs);

}  // namespace tessera
