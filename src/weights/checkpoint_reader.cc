#include "weights/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "kernels/parallel.h"
#include "weights/block_checksums.h"

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
  std::vector<const WantedBlocks::value_type*> blocks;
  for (const auto& block : wanted) blocks.push_back(&block);
  for_each_in_parallel(std::ssize(blocks), [&](std::int64_t i) {
    const auto& [place, block] = *blocks[static_cast<std::size_t>(i)];
    read_block(place.second, block);
  });
}

}  // namespace

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
  std::int64_t turn = 0;
  for (const auto& [name, stored] : index_.files) {
    for (std::int64_t block = 0; block < std::ssize(stored.checksums); ++block) {
      if (turn++ % num_ranks == rank) blocks.emplace_back(&file(name), block);
    }
  }
  for_each_in_parallel(std::ssize(blocks), [&](std::int64_t i) {
    const auto& [file, block] = blocks[static_cast<std::size_t>(i)];
    file->read_block(block, [](std::int64_t, std::string_view) {});
  });
}

}  // namespace tessera
