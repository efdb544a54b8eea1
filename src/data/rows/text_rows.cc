#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/rows/row_parser.h"
#include "data/tokenizer/characters.h"

namespace tessera {

namespace {

// The text without the end of its line: \n, or \r\n.
std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string with_plain_line_ends(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) != "\r\n") result += text[i];
  }
  return result;
}

class TextParser final : public RowParser {
 public:
  TextParser(std::string origin, RowCutting::Text text) : origin_(std::move(origin)), text_(text) {}

  std::vector<PlacedRow> parse(const RowBlock& block) const override {
    check_row_text(block.bytes, origin_, block.first_line);
    if (text_ == RowCutting::Text::kWhole)
      return {{Json{{"text", with_plain_line_ends(block.bytes)}}, block.first_line}};
    std::vector<PlacedRow> rows;
    const std::string_view bytes = block.bytes;
    std::int64_t line = block.first_line;
    for (std::size_t begin = 0; begin < bytes.size(); ++line) {
      const std::size_t end = std::min(bytes.find('\n', begin), bytes.size() - 1) + 1;
      const std::string_view whole = bytes.substr(begin, end - begin);
      std::string text(without_line_end(whole));
      if (text_ == RowCutting::Text::kLineWithEnd && whole.ends_with('\n')) text += '\n';
      rows.push_back({Json{{"text", std::move(text)}}, line});
      begin = end;
    }
    return rows;
  }

 private:
  std::string origin_;
  RowCutting::Text text_;
};

}  // namespace

std::shared_ptr<const RowParser> text_parser(std::string origin, RowCutting::Text text) {
  return std::make_shared<TextParser>(std::move(origin), text);
}

void check_row_text(std::string_view bytes, const std::string& origin, std::int64_t first_line) {
  const std::size_t num_sound = internal::num_well_formed_bytes(bytes);
  const std::size_t culprit = std::min(bytes.find('\0'), num_sound);
  if (culprit == bytes.size()) return;
  const std::int64_t line =
      first_line + std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(culprit), '\n');
  const auto byte = static_cast<unsigned char>(bytes[culprit]);
  throw UsageError(fmt::format("{}:{}: expected text in UTF-8, found the byte 0x{:02x}", origin, line, byte));
}

}  // namespace tessera
