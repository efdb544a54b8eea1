#include "weights/checked_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.h"
#include "weights/block_checksums.h"

namespace tessera {

CheckedFile::CheckedFile(const std::filesystem::path& path, const StoredFile& expected)
    : path_(path), expected_(expected) {
  const auto fail = [&](const std::string& reason) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw UsageError(fmt::format("{}: {}", path.string(), reason));
  };
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is refused, not waited for
  if (descriptor_ < 0) fail(std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) fail("not a regular file");
  if (status.st_size != expected.bytes) {
    fail(fmt::format("damaged: it has {} bytes, and the index says {}", status.st_size, expected.bytes));
  }
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

CheckedFile::~CheckedFile() {
  ::close(descriptor_);
}

std::int64_t CheckedFile::bytes_of_block(std::int64_t block) const {
  return std::min(kChecksumBlock, expected_.bytes - block * kChecksumBlock);
}

void CheckedFile::read_block(std::int64_t block, char* to) const {
  const std::int64_t begin = block * kChecksumBlock, count = bytes_of_block(block);
  read_bytes(begin, count, to);
  if (checksum_of({to, static_cast<std::size_t>(count)}) != expected_.checksums[static_cast<std::size_t>(block)]) {
    throw UsageError(fmt::format("{}: damaged: bytes {} to {} are not those that were saved", path_.string(), begin,
                                 begin + count - 1));
  }
}

void CheckedFile::read_bytes(std::int64_t offset, std::int64_t count, char* to) const {
  while (count > 0) {
    const ssize_t taken = ::pread(descriptor_, to, static_cast<std::size_t>(count), static_cast<off_t>(offset));
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
