// A file in memory without reading it: pages come when they are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace tessera {

// Written-to pages become the process's own, the file never changes. A file that others shorten while it is mapped ends
// the process with SIGBUS, as with every map: replace files by renaming. Safe to read from any thread.
class MappedFile {
 public:
  // Throws UsageError with the path and the system's reason.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string_view bytes() const { return {data_, num_bytes_}; }

  // This part is about to be read: its pages are mapped in one go (Linux 5.14; before, as they are touched).
  void expect(std::size_t offset, std::size_t num_bytes) const;

  // The pages that lie wholly in this part of bytes() leave the process's memory; touched again, they come back as the
  // file has them. For callers that have copied the part.
  void forget(std::size_t offset, std::size_t num_bytes) const;

 private:
  std::filesystem::path path_;
  char* data_ = nullptr;
  std::size_t num_bytes_ = 0;
};

}  // namespace tessera
