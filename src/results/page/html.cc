#include "results/page/html.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"

namespace tessera {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// The length of the UTF-8 character at `at`, or 0 where there is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  // Longer than needed, halves of UTF-16 pairs, beyond U+10FFFF.
  if (first == 0xE0 && byte(at + 1) < 0xA0) return 0;
  if (first == 0xED && byte(at + 1) >= 0xA0) return 0;
  if (first == 0xF0 && byte(at + 1) < 0x90) return 0;
  if (first == 0xF4 && byte(at + 1) >= 0x90) return 0;
  return length;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const char c = text[at];
    if (length == 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    const bool is_control = (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (is_control) {
      out += kReplacement;
    } else {
      out.append(text.substr(at, length));
    }
    at += length;
  }
  return out;
}

std::string link_to(const std::filesystem::path& file, const std::filesystem::path& page_folder) {
  namespace fs = std::filesystem;
  const fs::path from = fs::absolute(page_folder).lexically_normal();
  std::string path = fs::absolute(file).lexically_normal().lexically_relative(from).generic_string();
  if (!path.starts_with("..")) path = "./" + path;
  std::string link;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '.' || c == '_' || c == '~' || c == '/';
    link += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return link;
}

std::string exact(double value) {
  return fmt::format("{}", value);
}

std::string readable(double value) {
  if (std::isnan(value)) return "-";
  const double size = std::abs(value);
  if (std::isinf(value) || size >= 1e15) return fmt::format("{:.4g}", value);
  if (value == std::round(value) || size >= 1000) return grouped(std::llround(value));
  if (size < 1e-3) return fmt::format("{:.4g}", value);
  const int decimals = size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string readable_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 60) return fmt::format("{:.3g} s", seconds);
  const long long whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string readable_MB(double megabytes) {
  if (!std::isfinite(megabytes)) return "-";
  return megabytes < 1024 ? readable(megabytes) + " MiB" : readable(megabytes / 1024) + " GiB";
}

}  // namespace tessera
