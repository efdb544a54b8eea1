#include "weights/checkpoint_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "kernels/parallel.h"
#include "weights/block_checksums.h"
#include "weights/mapped_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// What is wanted of a block.
struct WantedBytes {
  std::int64_t offset, count;  // in the file
  char* to;
};
struct WantedBlock {
  const CheckedFile* file;
  std::vector<WantedBytes> bytes;
};
using WantedBlocks = std::map<std::pair<std::string, std::int64_t>, WantedBlock>;  // by file and block

void add_bytes(WantedBlocks& blocks, const std::string& name, const CheckedFile& file, const WantedBytes& wanted) {
  for (std::int64_t done = 0; done < wanted.count;) {
    const std::int64_t offset = wanted.offset + done, block = offset / kChecksumBlock;
    const std::int64_t count = std::min(wanted.count - done, (block + 1) * kChecksumBlock - offset);
    WantedBlock& of_block = blocks[{name, block}];
    of_block.file = &file;
    of_block.bytes.push_back({offset, count, wanted.to + done});
    done += count;
  }
}

// Calls body(i) for all i below `num` by several threads. Of the exceptions the one of the lowest i is thrown: threads
// take the numbers in order, so those below a failed one have been taken, and those above need not be.
void for_each_in_parallel(std::int64_t num, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> failed = num;
  std::mutex mutex;
  std::exception_ptr error;
  kernels::parallel_parts(0, num, 1, [&](std::int64_t i, std::int64_t) {
    if (i > failed) return;
    try {
      body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i > failed) return;
      failed = i;
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

void read_block(std::int64_t block, const WantedBlock& wanted) {
  if (!wanted.file->has_checksums()) {
    for (const WantedBytes& piece : wanted.bytes) wanted.file->read_bytes(piece.offset, piece.count, piece.to);
    return;
  }
  wanted.file->read_block(block, [&](std::int64_t offset, std::string_view bytes) {
    for (const WantedBytes& piece : wanted.bytes) {
      const std::int64_t begin = std::max(offset, piece.offset);
      const std::int64_t end = std::min(offset + std::ssize(bytes), piece.offset + piece.count);
      if (begin >= end) continue;
      std::memcpy(piece.to + (begin - piece.offset), bytes.data() + (begin - offset),
                  static_cast<std::size_t>(end - begin));
    }
  });
}

void read_blocks(const WantedBlocks& wanted) {
  const std::vector<WantedBlocks::value_type> blocks(wanted.begin(), wanted.end());
  for_each_in_parallel(std::ssize(blocks), [&](std::int64_t i) {
    const auto& [place, block] = blocks[static_cast<std::size_t>(i)];
    read_block(place.second, block);
  });
}

void check_record(const fs::path& path, const StoredRecord& record) {
  const MappedFile file(path);
  const auto offset = static_cast<std::size_t>(record.offset), bytes = static_cast<std::size_t>(record.bytes);
  if (crc32(file.bytes().substr(offset, bytes)) == record.checksum) return;
  throw UsageError(fmt::format("{}: damaged: bytes {} to {} are not those that were saved", path.string(), offset,
                               offset + bytes - 1));
}

}  // namespace

CheckedFile::CheckedFile(const std::filesystem::path& path, const StoredFile& expected)
    : path_(path), expected_(expected) {
  const auto fail = [&](const std::string& reason) { refuse_file(path.string(), reason); };
  descriptor_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe is refused, not waited for
  struct stat status {};
  if (!descriptor_ || ::fstat(descriptor_.get(), &status) != 0) fail(std::generic_category().message(errno));
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

const CheckedFile& CheckpointReader::file(const std::string& name) {
  std::unique_ptr<CheckedFile>& file = files_[name];
  if (!file) file = std::make_unique<CheckedFile>(folder_ / name, index_.files.at(name));
  return *file;
}

void CheckpointReader::read(const std::vector<TensorRange>& ranges) {
  WantedBlocks wanted;
  for (auto [tensor, begin, end, to] : ranges) {
    const std::int64_t element = bytes_of(tensor->type);
    // Parts are in order: the first that ends behind `begin`.
    auto part = std::upper_bound(tensor->parts.begin(), tensor->parts.end(), begin,
                                 [](std::int64_t at, const StoredPart& each) { return at < each.end; });
    for (; begin < end && part != tensor->parts.end(); ++part) {
      const std::int64_t until = std::min(end, part->end);
      add_bytes(wanted, part->file, file(part->file),
                {part->offset + (begin - part->begin) * element, (until - begin) * element, to});
      to += (until - begin) * element;
      begin = until;
    }
  }
  read_blocks(wanted);
}

std::string CheckpointReader::text_of(const std::string& name) {
  const auto found = index_.files.find(name);
  if (found == index_.files.end()) {
    throw UsageError(fmt::format("{}: the index does not list {}", folder_.string(), name));
  }
  std::string text(static_cast<std::size_t>(found->second.bytes), '\0');
  WantedBlocks wanted;
  add_bytes(wanted, name, file(name), {0, found->second.bytes, text.data()});
  read_blocks(wanted);
  return text;
}

void CheckpointReader::check_sizes() {
  for (const auto& [name, unused] : index_.files) file(name);
}

void CheckpointReader::verify(int rank, int num_ranks) {
  std::vector<std::pair<const CheckedFile*, std::int64_t>> blocks;
  std::vector<std::pair<const std::string*, const StoredRecord*>> records;
  std::int64_t turn = 0;
  for (const auto& [name, stored] : index_.files) {
    for (std::int64_t block = 0; block < std::ssize(stored.checksums); ++block) {
      if (turn++ % num_ranks == rank) blocks.emplace_back(&file(name), block);
    }
    for (const StoredRecord& record : stored.records) {
      if (turn++ % num_ranks == rank) records.emplace_back(&name, &record);
    }
  }
  for_each_in_parallel(std::ssize(blocks), [&](std::int64_t i) {
    const auto& [file, block] = blocks[static_cast<std::size_t>(i)];
    file->read_block(block, [](std::int64_t, std::string_view) {});
  });
  for_each_in_parallel(std::ssize(records), [&](std::int64_t i) {
    const auto& [name, record] = records[static_cast<std::size_t>(i)];
    check_record(folder_ / *name, *record);
  });
}

}  // namespace tessera
