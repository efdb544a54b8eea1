#include "data/text/corpus_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/log.h"

namespace tessera {

namespace {

int num_threads_of(const CorpusSettings& settings) {
  return settings.num_threads > 0 ? settings.num_threads
                                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

CorpusMaker::CorpusMaker(CorpusFolder& folder, const OpenStream& open, const EncodeRow& encode,
                         const CorpusSettings& settings, CorpusInput input)
    : folder_(folder),
      open_(open),
      encode_(encode),
      settings_(settings),
      input_(std::move(input)),
      num_threads_(num_threads_of(settings)) {}

std::vector<TokenStore> CorpusMaker::make(std::unique_ptr<RowStream> stream) {
  progress_.total = stream->num_bytes();
  files_ = stream->files();
  go_through(*stream, std::numeric_limits<std::size_t>::max());
  while (!wait_for_others()) go_through(*open_(), num_parts_to_read());
  std::vector<TokenStore> all;
  for (Part& part : parts_) all.push_back(std::move(*part.tokens));
  return all;
}

// Reads all blocks, and encodes those of the parts that are neither there nor being made by another process.
void CorpusMaker::go_through(RowStream& stream, std::size_t num_parts) {
  BlockEncoder encoder(stream, encode_, num_threads_);
  std::size_t number = 0;
  bool is_in_part = false, is_own = false;
  std::int64_t num_input_bytes = 0, file_bytes_before = 0;
  while (is_in_part || number < num_parts) {
    std::optional<RowBlock> block = stream.next();
    if (!block) break;
    if (!std::exchange(is_in_part, true)) {
      is_own = begin_part(number);
      num_input_bytes = 0;
    }
    num_input_bytes += std::ssize(block->bytes);
    const std::int64_t file_bytes = stream.num_bytes_done() - std::exchange(file_bytes_before, stream.num_bytes_done());
    parts_[number].file_bytes += file_bytes;
    if (is_own) {
      while (encoder.is_full()) take_block(encoder);
      encoder.add(std::move(*block));
      block_bytes_.push_back(file_bytes);
      ++own_parts_.back().num_blocks_left;
    }
    if (num_input_bytes >= input_.part_bytes) {
      end_part(number++);
      is_in_part = false;
    }
  }
  if (is_in_part) end_part(number);
  while (!encoder.is_empty()) take_block(encoder);
}

// Whether this process makes it.
bool CorpusMaker::begin_part(std::size_t number) {
  if (number == parts_.size()) parts_.emplace_back();
  Part& part = parts_[number];
  part.file_bytes = 0;
  if (!part.tokens) part.tokens = folder_.open_part(number);
  if (part.tokens) return false;
  std::optional<MakerLock> lock = folder_.keeps() ? folder_.try_lock(number) : std::nullopt;
  if (folder_.keeps()) {
    if (!lock) return false;
    part.tokens = folder_.open_part(number, /*is_loud=*/false);  // made since we looked
    if (part.tokens) return false;
  }
  own_parts_.push_back({.number = number, .lock = std::move(lock)});
  return true;
}

void CorpusMaker::end_part(std::size_t number) {
  if (!own_parts_.empty() && own_parts_.back().number == number) {
    own_parts_.back().is_read = true;
    finish_parts();
  } else if (parts_[number].tokens) {
    count_found(parts_[number]);
  }
}

void CorpusMaker::take_block(BlockEncoder& encoder) {
  const EncodedBlock block = encoder.take();
  OwnPart& part = own_parts_.front();
  for (const EncodedRow& row : block.rows) part.builder.add_counted(row.ids, row.counted, row.is_truncated);
  for (std::int64_t i = 0; i < block.num_dropped; ++i) part.builder.add_dropped();
  part.num_rows_of_file += block.num_rows_of_file;
  --part.num_blocks_left;
  progress_.done += block_bytes_.front();
  block_bytes_.pop_front();
  report();
  finish_parts();
}

void CorpusMaker::finish_parts() {
  while (!own_parts_.empty() && own_parts_.front().is_read && own_parts_.front().num_blocks_left == 0) {
    const OwnPart& own = own_parts_.front();
    Part& part = parts_[own.number];
    check_files();
    part.tokens = folder_.keep_part(own.number, own.builder.bytes(folder_.part_key(own.number), own.num_rows_of_file));
    part.is_counted = true;
    ++num_made_;
    own_parts_.pop_front();  // and its lock
  }
}

// Before a part is kept under the key of what the files held at the start.
void CorpusMaker::check_files() const {
  if (!folder_.keeps() || name_of_files(files_) == input_.files_name) return;
  throw UsageError(fmt::format("{}{}: changed while its rows were tokenised; start again when it stays as it is",
                               files_.front().string(), files_.size() > 1 ? " or a file after it" : ""));
}

// True: all parts are there. False: one is missing, and nobody makes it; its maker has failed or died.
bool CorpusMaker::wait_for_others() {
  constexpr double kSilentSeconds = 2;
  const double begin = steady_seconds();
  for (bool is_said = false; true;) {
    std::int64_t num_missing = 0;
    for (std::size_t number = 0; number < parts_.size(); ++number) {
      Part& part = parts_[number];
      if (part.tokens) continue;
      // Before looking again: if nobody holds the lock and the part is not there, nobody is making it.
      const bool is_free = !folder_.keeps() || folder_.try_lock(number).has_value();
      part.tokens = folder_.open_part(number, /*is_loud=*/false);
      if (part.tokens) {
        count_found(part);
      } else if (is_free) {
        return false;
      } else {
        ++num_missing;
      }
    }
    if (num_missing == 0) return true;
    if (!is_said && steady_seconds() - begin > kSilentSeconds) {
      log_info("waiting for other processes to tokenise {} parts of {}", num_missing, folder_.path().string());
      is_said = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(is_said ? 100 : 10));
  }
}

std::size_t CorpusMaker::num_parts_to_read() const {
  const auto last_missing =
      std::find_if(parts_.rbegin(), parts_.rend(), [](const Part& part) { return !part.tokens.has_value(); });
  return static_cast<std::size_t>(parts_.rend() - last_missing);
}

void CorpusMaker::count_found(Part& part) {
  if (std::exchange(part.is_counted, true)) return;
  progress_.done += part.file_bytes;
  progress_.found += part.file_bytes;
  report();
}

void CorpusMaker::report() const {
  if (settings_.on_progress) settings_.on_progress(progress_);
}

}  // namespace tessera
