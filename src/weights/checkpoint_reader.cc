#include "weights/checkpoint_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "weights/block_checksums.h"

namespace tessera {

namespace fs = std::filesystem;

CheckedFile::CheckedFile(const fs::path& path, const StoredFile& expected) : path_(path), expected_(expected) {
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

void CheckedFile::read(std::int64_t offset, std::int64_t count, char* to) {
  if (expected_.checksums.empty()) return read_at(offset, count, to);
  while (count > 0) {
    const std::int64_t block = offset / kChecksumBlock, within = offset % kChecksumBlock;
    load(block);
    const std::int64_t copied = std::min(count, std::ssize(block_) - within);
    std::memcpy(to, block_.data() + within, static_cast<std::size_t>(copied));
    to += copied;
    offset += copied;
    count -= copied;
  }
}

void CheckedFile::verify(std::int64_t block) {
  load(block);
}

void CheckedFile::free_block() {
  block_ = {};
  loaded_ = -1;
}

void CheckedFile::load(std::int64_t block) {
  if (block == loaded_) return;
  loaded_ = -1;
  const std::int64_t begin = block * kChecksumBlock;
  block_.resize(static_cast<std::size_t>(std::min(kChecksumBlock, expected_.bytes - begin)));
  read_at(begin, std::ssize(block_), block_.data());
  if (checksum_of({block_.data(), block_.size()}) != expected_.checksums[static_cast<std::size_t>(block)]) {
    throw UsageError(fmt::format("{}: damaged: bytes {} to {} are not those that were saved", path_.string(), begin,
                                 begin + std::ssize(block_) - 1));
  }
  loaded_ = block;
}

void CheckedFile::read_at(std::int64_t offset, std::int64_t count, char* to) const {
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

CheckpointReader::CheckpointReader(fs::path folder)
    : folder_(std::move(folder)),
      index_(parse_index(read_file(folder_ / kIndexFile), (folder_ / kIndexFile).string())) {}

CheckpointReader::CheckpointReader(fs::path folder, CheckpointIndex index)
    : folder_(std::move(folder)), index_(std::move(index)) {
  check_index(index_, folder_.string());
}

bool CheckpointReader::is_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kIndexFile, ignored);
}

CheckedFile& CheckpointReader::file(const std::string& name) {
  std::unique_ptr<CheckedFile>& file = files_[name];
  if (!file) file = std::make_unique<CheckedFile>(folder_ / name, index_.files.at(name));
  if (last_ != nullptr && last_ != file.get()) last_->free_block();
  last_ = file.get();
  return *file;
}

void CheckpointReader::read(const StoredTensor& tensor, std::int64_t begin, std::int64_t end, char* to) {
  const std::int64_t element = bytes_of(tensor.type);
  // Parts are in order: the first that ends behind `begin`.
  auto part = std::upper_bound(tensor.parts.begin(), tensor.parts.end(), begin,
                               [](std::int64_t at, const StoredPart& each) { return at < each.end; });
  for (; begin < end && part != tensor.parts.end(); ++part) {
    const std::int64_t until = std::min(end, part->end);
    file(part->file).read(part->offset + (begin - part->begin) * element, (until - begin) * element, to);
    to += (until - begin) * element;
    begin = until;
  }
}

std::string CheckpointReader::text_of(const std::string& name) {
  const auto found = index_.files.find(name);
  if (found == index_.files.end()) {
    throw UsageError(fmt::format("{}: the index does not list {}", folder_.string(), name));
  }
  std::string text(static_cast<std::size_t>(found->second.bytes), '\0');
  file(name).read(0, found->second.bytes, text.data());
  return text;
}

void CheckpointReader::check_sizes() {
  for (const auto& [name, unused] : index_.files) file(name);
}

void CheckpointReader::verify(int rank, int num_ranks) {
  std::int64_t turn = 0;
  for (const auto& [name, stored] : index_.files) {
    for (std::int64_t block = 0; block < std::ssize(stored.checksums); ++block) {
      if (turn++ % num_ranks == rank) file(name).verify(block);
    }
  }
}

}  // namespace tessera
