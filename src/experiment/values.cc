#include "experiment/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

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

// Blanked, so that lines and columns of messages stay right; nlohmann's own comments would shift them.
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

}  // namespace

bool is_variable_name(std::string_view name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string_view::npos &&
         !(name.front() >= '0' && name.front() <= '9');
}

void Values::set(const std::string& name, std::string text, std::string origin) {
  for (Entry& entry : entries_) {
    if (entry.first != name) continue;
    entry.second = {std::move(text), std::move(origin)};
    return;
  }
  entries_.push_back({name, {std::move(text), std::move(origin)}});
}

void Values::unset(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

const Given* Values::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.first == name; });
  return found == entries_.end() ? nullptr : &found->second;
}

std::string Values::text(std::string_view name) const {
  const Given* given = find(name);
  return given == nullptr ? "" : given->text;
}

std::string Values::require_text(std::string_view name) const {
  const Given* given = find(name);
  if (given == nullptr || given->text.empty()) throw UsageError(fmt::format("'{}' is missing", name));
  return given->text;
}

int Values::count(std::string_view name, int least) const {
  require_text(name);
  const Given& given = *find(name);
  const auto number = parse_integer(given.text);
  if (!number || *number < least || *number > 30'000) {
    throw UsageError(fmt::format("{}: {} = '{}': expected a whole number from {} to 30000", given.origin, name,
                                 printable(given.text, 40), least));
  }
  return static_cast<int>(*number);
}

Json parse_commented_object(std::string_view text, const std::string& origin) {
  Json root = parse_json(without_comments(text), origin);
  if (!root.is_object()) refuse_file(origin, "expected a JSON object: { ... }");
  return root;
}

}  // namespace tessera
