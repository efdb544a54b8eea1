#include "data/rows/row_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/quantity.h"
#include "data/rows/byte_source.h"
#include "data/rows/row_format.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// One file on its way: gives one block after the other, without their numbers.
class FileOfRows {
 public:
  FileOfRows(const fs::path& file, RowFileStart start, const RowCutting& cutting)
      : start_(std::move(start)), cutting_(cutting) {
    if (start_.table) return;
    source_.emplace(file);
    source_->skip(start_.offset);
  }

  std::optional<RowBlock> next() { return start_.table ? next_of_table() : next_of_text(); }

  // Of `num_bytes`, the file's size.
  std::int64_t num_bytes_done(std::int64_t num_bytes) const {
    if (!source_) {
      const double part = static_cast<double>(next_row_) / static_cast<double>(std::max<std::int64_t>(num_rows(), 1));
      return static_cast<std::int64_t>(part * static_cast<double>(num_bytes));
    }
    const std::int64_t not_yet = source_->is_packed() ? 0 : std::ssize(buffer_);
    return source_->num_file_bytes_read() - not_yet;
  }

 private:
  std::int64_t num_rows() const { return start_.table->num_rows(); }

  std::optional<RowBlock> next_of_table() {
    if (next_row_ >= num_rows()) return std::nullopt;
    RowBlock block;
    block.first_row = next_row_;
    block.first_line = 0;
    next_row_ = start_.table->block_end(next_row_, cutting_.block_bytes);
    return block;
  }

  std::optional<RowBlock> next_of_text() {
    RowScanner& scanner = *start_.scanner;
    while (true) {
      const std::int64_t line = scanner.line();
      const auto cut = scanner.cut(buffer_, cutting_.block_bytes, is_at_end_);
      if (cut) {
        std::string rest;
        rest.reserve(cutting_.block_bytes + cutting_.piece_bytes);
        rest.append(buffer_, cut->end);
        RowBlock block;
        block.first_row = next_row_;
        block.first_line = line;
        buffer_.resize(cut->end);
        block.bytes = std::exchange(buffer_, std::move(rest));
        next_row_ += cut->num_rows;
        if (cut->num_rows > 0) return block;
      } else if (is_at_end_) {
        return std::nullopt;
      } else {
        if (buffer_.size() - scanner.row_begin() > cutting_.most_row_bytes) refuse_large_row();
        is_at_end_ = !source_->read(buffer_, cutting_.piece_bytes);
      }
    }
  }

  [[noreturn]] void refuse_large_row() const {
    throw UsageError(fmt::format("{}:{}: the row that begins here is larger than {}", start_.scanner->origin(),
                                 start_.scanner->row_line(buffer_),
                                 format_bytes(static_cast<std::int64_t>(cutting_.most_row_bytes))));
  }

  RowFileStart start_;
  RowCutting cutting_;
  std::optional<ByteSource> source_;  // none: a table
  std::string buffer_;                // read, but in no block yet
  bool is_at_end_ = false;
  std::int64_t next_row_ = 0;
};

class FilesOfRows final : public RowStream {
 public:
  FilesOfRows(std::vector<fs::path> files, const RowCutting& cutting)
      : files_(std::move(files)), cutting_(cutting), parsers_(files_.size()) {
    for (const fs::path& file : files_) {
      if (!is_file(file)) {
        throw UsageError(fmt::format("cannot read {}: {}", file.string(),
                                     is_there(file) ? "it is not a regular file" : "there is no such file"));
      }
      if (!row_format_of(file)) {
        refuse_file(file.string(), "expected a file that ends in one of " + known_row_endings());
      }
      sizes_.push_back(static_cast<std::int64_t>(fs::file_size(file)));
      num_bytes_ += sizes_.back();
    }
  }

  const std::vector<fs::path>& files() const override { return files_; }
  std::int64_t num_bytes() const override { return num_bytes_; }
  std::int64_t num_bytes_done() const override {
    return num_bytes_before_ + (current_ ? std::min(current_->num_bytes_done(sizes_[file_]), sizes_[file_]) : 0);
  }

  std::optional<RowBlock> next() override {
    for (; file_ < files_.size(); num_bytes_before_ += sizes_[file_++]) {
      if (!current_) {
        RowFileStart start = start_of_rows(files_[file_], cutting_);
        keep_parser(file_, start.parser);
        current_.emplace(files_[file_], std::move(start), cutting_);
      }
      if (auto block = current_->next()) {
        block->number = num_blocks_++;
        block->file = file_;
        return block;
      }
      current_.reset();
    }
    return std::nullopt;
  }

  std::vector<PlacedRow> parse(const RowBlock& block) const override { return parser_of(block.file)->parse(block); }

 private:
  void keep_parser(std::size_t file, std::shared_ptr<const RowParser> parser) const {
    const std::lock_guard lock(mutex_);
    parsers_[file] = std::move(parser);
  }

  // A block may come from another stream of the same files, which has read further.
  std::shared_ptr<const RowParser> parser_of(std::size_t file) const {
    {
      const std::lock_guard lock(mutex_);
      if (parsers_.at(file)) return parsers_[file];
    }
    keep_parser(file, start_of_rows(files_[file], cutting_).parser);
    return parser_of(file);
  }

  std::vector<fs::path> files_;
  RowCutting cutting_;
  std::vector<std::int64_t> sizes_;
  std::int64_t num_bytes_ = 0, num_bytes_before_ = 0, num_blocks_ = 0;
  std::size_t file_ = 0;
  std::optional<FileOfRows> current_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const RowParser>> parsers_;  // of the files opened so far
};

}  // namespace

std::string RowStream::place_of(const RowBlock& block, const PlacedRow& row) const {
  const std::string file = files().at(block.file).string();
  return block.first_line == 0 ? fmt::format("{}: row {}", file, row.line) : fmt::format("{}:{}", file, row.line);
}

std::unique_ptr<RowStream> open_rows(std::vector<fs::path> files, const RowCutting& cutting) {
  return std::make_unique<FilesOfRows>(std::move(files), cutting);
}

}  // namespace tessera
