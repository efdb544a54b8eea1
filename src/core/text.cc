#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tessera {

namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";

// Edits that turn `a` into `b`: insert, delete, replace, or swap two neighbours (the most common typing error).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != std::string_view::npos; begin = end + 1) {
    parts.emplace_back(text.substr(begin, end - begin));
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  // ASCII only, whatever the locale: settings and suffixes are ASCII.
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<long long> parse_integer(std::string_view text) {
  return parse_whole<long long>(text);
}

std::optional<double> parse_real(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t smallest = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= smallest) continue;
    smallest = distance;
    best = candidate;
  }
  if (best || word.size() < 2) return best;
  for (const std::string& candidate : candidates) {
    if (!candidate.starts_with(word)) continue;
    if (best) return std::nullopt;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, const char* form) {
  const std::optional<std::string> meant = nearest(word, candidates);
  return meant ? fmt::format(fmt::runtime(form), *meant) : "";
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::string indented(std::string_view lines) {
  std::string text;
  for (const std::string& line : split(lines, '\n')) text += line.empty() ? "" : "  " + line + "\n";
  return text;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string result;
  std::size_t i = 0;
  for (; i < text.size() && result.size() < max_bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '\n') {
      result += "\\n";
    } else if (text[i] == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += text[i];
    }
  }
  if (i == text.size()) return result;
  // Do not cut inside a multi-byte character: its bytes after the first are 10xxxxxx.
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  if (continues(text[i])) {
    while (!result.empty() && continues(result.back())) result.pop_back();
    if (!result.empty()) result.pop_back();
  }
  return result + "...";
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) shown.push_back(printable(names[i]));
  const std::string more = names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "";
  return join(shown, ", ") + more;
}

std::string grouped(long long number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t i = std::ssize(digits) - 3; i > first; i -= 3) digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

std::string format_ranges(const std::vector<int>& sorted_numbers) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < sorted_numbers.size();) {
    std::size_t last = i;
    while (last + 1 < sorted_numbers.size() && sorted_numbers[last + 1] - 1 <= sorted_numbers[last]) ++last;
    const int low = sorted_numbers[i], high = sorted_numbers[last];
    ranges.push_back(low == high ? fmt::format("{}", low) : fmt::format("{}-{}", low, high));
    i = last + 1;
  }
  return join(ranges, ", ");
}

}  // namespace tessera
