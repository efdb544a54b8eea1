#include "weights/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "kernels/parallel.h"
#include "weights/block_checksums.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// Memory of blocks, used again and again: fresh pages cost as much as reading into them.
class BlockRoom {
 public:
  std::vector<char> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::vector<char>(static_cast<std::size_t>(kChecksumBlock));
    std::vector<char> room = std::move(free_.back());
    free_.pop_back();
    return room;
  }
  void give_back(std::vector<char> room) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(room));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<char>> free_;
};

// Calls body(i) for all i below `num` by several threads. Of the exceptions the one of the lowest i is thrown.
void for_each_in_parallel(std::int64_t num, const std::function<void(std::int64_t)>& body) {
  std::mutex mutex;
  std::int64_t failed = num;
  std::exception_ptr error;
  kernels::parallel_parts(0, num, 1, [&](std::int64_t i, std::int64_t) {
    try {
      body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
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

void CheckpointReader::want(const std::string& file, std::int64_t offset, std::int64_t count, char* to,
                            Wanted& wanted) {
  while (count > 0) {
    const std::int64_t block = offset / kChecksumBlock;
    const std::int64_t here = std::min(count, (block + 1) * kChecksumBlock - offset);
    wanted[{file, block}].push_back({offset, here, to});
    to += here;
    offset += here;
    count -= here;
  }
}

void CheckpointReader::read_wanted(const Wanted& wanted) {
  struct Block {
    const BlockId* id;
    const CheckedFile* file;
    const std::vector<Piece>* pieces;
  };
  std::vector<Block> blocks;
  for (const auto& [id, pieces] : wanted) blocks.push_back({&id, &file(id.first), &pieces});
  BlockRoom room;
  const auto copy = [](const Block& block, const std::vector<char>& bytes) {
    for (const Piece& piece : *block.pieces) {
      const char* const from = bytes.data() + (piece.offset - block.id->second * kChecksumBlock);
      std::memcpy(piece.to, from, static_cast<std::size_t>(piece.count));
    }
  };
  std::vector<char> last;
  for_each_in_parallel(std::ssize(blocks), [&](std::int64_t i) {
    const Block& block = blocks[static_cast<std::size_t>(i)];
    if (!block.file->has_checksums()) {
      for (const Piece& piece : *block.pieces) block.file->read_bytes(piece.offset, piece.count, piece.to);
    } else if (*block.id == kept_id_) {
      copy(block, kept_);
    } else if (const Piece& first = block.pieces->front();
               block.pieces->size() == 1 && first.count == block.file->bytes_of_block(block.id->second)) {
      block.file->read_block(block.id->second, first.to);
    } else {
      std::vector<char> bytes = room.take();
      block.file->read_block(block.id->second, bytes.data());
      copy(block, bytes);
      if (i + 1 == std::ssize(blocks)) {
        last = std::move(bytes);
      } else {
        room.give_back(std::move(bytes));
      }
    }
  });
  if (last.empty()) return;
  kept_id_ = *blocks.back().id;
  kept_ = std::move(last);
}

void CheckpointReader::read(const std::vector<TensorRange>& ranges) {
  Wanted wanted;
  for (auto [tensor, begin, end, to] : ranges) {
    const std::int64_t element = bytes_of(tensor->type);
    // Parts are in order: the first that ends behind `begin`.
    auto part = std::upper_bound(tensor->parts.begin(), tensor->parts.end(), begin,
                                 [](std::int64_t at, const StoredPart& each) { return at < each.end; });
    for (; begin < end && part != tensor->parts.end(); ++part) {
      const std::int64_t until = std::min(end, part->end);
      want(part->file, part->offset + (begin - part->begin) * element, (until - begin) * element, to, wanted);
      to += (until - begin) * element;
      begin = until;
    }
  }
  read_wanted(wanted);
}

std::string CheckpointReader::text_of(const std::string& name) {
  const auto found = index_.files.find(name);
  if (found == index_.files.end()) {
    throw UsageError(fmt::format("{}: the index does not list {}", folder_.string(), name));
  }
  std::string text(static_cast<std::size_t>(found->second.bytes), '\0');
  Wanted wanted;
  want(name, 0, found->second.bytes, text.data(), wanted);
  read_wanted(wanted);
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
  BlockRoom room;
  for_each_in_parallel(std::ssize(blocks), [&](std::int64_t i) {
    const auto& [file, block] = blocks[static_cast<std::size_t>(i)];
    std::vector<char> bytes = room.take();
    file->read_block(block, bytes.data());
    room.give_back(std::move(bytes));
  });
}

}  // namespace tessera
