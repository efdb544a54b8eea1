// A stream of rows for tests: the lines of one file as {"text": line}, some lines per block.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "data/rows/row_stream.h"

namespace tessera {

class LinesOfText : public RowStream {
 public:
  LinesOfText(const std::filesystem::path& file, std::int64_t lines_per_block)
      : files_{file}, text_(read_file(file)), lines_per_block_(lines_per_block) {}

  std::int64_t broken_block = -1;  // cannot be parsed

  const std::vector<std::filesystem::path>& files() const override { return files_; }
  std::int64_t num_bytes() const override { return std::ssize(text_); }
  std::int64_t num_bytes_done() const override { return static_cast<std::int64_t>(at_); }

  std::optional<RowBlock> next() override {
    if (at_ == text_.size()) return std::nullopt;
    RowBlock block{number_, 0, number_ * lines_per_block_, number_ * lines_per_block_ + 1, ""};
    std::size_t end = at_;
    for (std::int64_t i = 0; i < lines_per_block_ && end < text_.size(); ++i) end = text_.find('\n', end) + 1;
    block.bytes = text_.substr(at_, end - at_);
    at_ = end;
    ++number_;
    return block;
  }

  std::vector<PlacedRow> parse(const RowBlock& block) const override {
    if (block.number == broken_block) {
      throw UsageError(files_[0].string() + ":" + std::to_string(block.first_line) + ": expected a string");
    }
    std::vector<PlacedRow> rows;
    for (std::size_t begin = 0; begin < block.bytes.size();) {
      const std::size_t end = block.bytes.find('\n', begin);
      rows.push_back({{{"text", block.bytes.substr(begin, end - begin)}}, block.first_line + std::ssize(rows)});
      begin = end + 1;
    }
    return rows;
  }

 private:
  std::vector<std::filesystem::path> files_;
  std::string text_;
  std::int64_t lines_per_block_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace tessera
