#include "experiment/json_comments.h"

#include "core/error.h"

namespace tessera {
namespace {

void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// The end of the string literal that begins at `begin`, behind its closing quote.
std::size_t end_of_string(const std::string& text, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return i + 1;
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string clean(text);
  for (std::size_t i = 0; i < clean.size();) {
    if (clean[i] == '"') {
      i = end_of_string(clean, i);
    } else if (clean.compare(i, 2, "//") == 0) {
      const std::size_t end = std::min(clean.find('\n', i), clean.size());
      blank(clean, i, end);
      i = end;
    } else if (clean.compare(i, 2, "/*") == 0) {
      const std::size_t close = clean.find("*/", i + 2);
      const std::size_t end = close == std::string::npos ? clean.size() : close + 2;
      blank(clean, i, end);
      i = end;
    } else {
      ++i;
    }
  }
  return clean;
}

Json parse_commented_object(std::string_view text, const std::string& origin) {
  Json root = parse_json(without_comments(text), origin);
  if (!root.is_object()) refuse_file(origin, "expected a JSON object: { ... }");
  return root;
}

}  // namespace tessera
