#include "data/templates/source_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

// The largest published template has 20 KB.
constexpr std::size_t kMaxTemplateBytes = 4 * 1024 * 1024;

std::string with_plain_line_ends(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i] == '\r' ? '\n' : text[i];
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

}  // namespace

SourceText::SourceText(std::string_view text, std::string origin) : origin_(std::move(origin)) {
  if (text.size() > kMaxTemplateBytes) {
    refuse_file(origin_,
                fmt::format("expected a template of at most {} bytes, found {}", kMaxTemplateBytes, text.size()));
  }
  if (const std::size_t sound = num_well_formed_bytes(text); sound < text.size()) {
    refuse_file(origin_, fmt::format("expected UTF-8, found something else at byte {}", sound));
  }
  text_ = with_plain_line_ends(text);
}

std::string SourceText::place(Offset offset) const {
  const std::string_view before = std::string_view(text_).substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto column = 1 + std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_begin), before.end(),
                                        [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return fmt::format("{}:{}:{}", origin_, line, column);
}

void SourceText::refuse(Offset offset, const std::string& mistake) const {
  throw UsageError(place(offset) + ": " + mistake);
}

}  // namespace tessera::internal::jinja
