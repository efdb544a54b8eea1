#include "weights/checked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

#include "core/error.h"
#include "weights/block_checksums.h"

namespace tessera {

CheckedFile::CheckedFile(const std::filesystem::path& path, const StoredFile& expected)
    : path_(path), expected_(expected) {
  const auto fail = [&](const std::string& reason) { throw UsageError(fmt::format("{}: {}", path.string(), reason)); };
  descriptor_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe is refused, not waited for
  if (!descriptor_) fail(std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) fail(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) fail("not a regular file");
  if (status.st_size != expected.bytes) {
    fail(fmt::format("damaged: it has {} bytes, and the index says {}", status.st_size, expected.bytes));
  }
  ::posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

void CheckedFile::read_block(std::int64_t block,
                             const std::function<void(std::int64_t offset, std::string_view)>& take) const {
  constexpr std::int64_t kPieceBytes = 256 << 10;  // what was read is still in the cache when it is summed up and taken
  const auto piece = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  const std::int64_t begin = block * kChecksumBlock, end = std::min(begin + kChecksumBlock, expected_.bytes);
  BlockChecksums checksums;
  for (std::int64_t at = begin; at < end; at += kPieceBytes) {
    const std::int64_t count = std::min(kPieceBytes, end - at);
    read_bytes(at, count, piece.get());
    const std::string_view bytes(piece.get(), static_cast<std::size_t>(count));
    checksums.add(bytes);
    take(at, bytes);
  }
  if (checksums.finish().front() != expected_.checksums.at(static_cast<std::size_t>(block))) {
    throw UsageError(
        fmt::format("{}: damaged: bytes {} to {} are not those that were saved", path_.string(), begin, end - 1));
  }
}

void CheckedFile::read_bytes(std::int64_t offset, std::int64_t count, char* to) const {
  while (count > 0) {
    const ssize_t taken = ::pread(descriptor_.get(), to, static_cast<std::size_t>(count), static_cast<off_t>(offset));
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) {
      throw UsageError(fmt::format("cannot read {}: {}", path_.string(),
                                   taken == 0 ? "it became shorter" : std::generic_category().message(errno)));
    }
    to += taken;
    offset += taken;
    count -= taken;
  }
}

}  // namespace tessera
