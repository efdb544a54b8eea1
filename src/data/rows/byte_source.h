// The bytes of a file from its start to its end, piece by piece; those that gzip packed are unpacked on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace tessera {

// One thread at a time. Throws UsageError naming the file: where it cannot be read, is damaged or is cut off.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path);

  // Appends up to `most_bytes` to `bytes`; false: nothing is left.
  bool read(std::string& bytes, std::size_t most_bytes);
  void skip(std::uint64_t num_bytes);

  bool is_packed() const;
  // Of the file itself, so that a packed one can show how far it has been read.
  std::int64_t num_file_bytes_read() const;

 private:
  struct Closer {
    void operator()(void* file) const;
  };

  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  std::unique_ptr<void, Closer> file_;  // a gzFile, kept out of this header
};

}  // namespace tessera
