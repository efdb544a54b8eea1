#include "core/log_record.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tessera {

namespace {

// Python writes an exponent at 1e16 and above, and below 1e-4.
constexpr int kFirstLargeExponent = 16;
constexpr int kLastSmallExponent = -5;

}  // namespace

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Long enough for the fixed form of any double within the exponents above, and for the scientific form of all.
  char buffer[64];
  auto end = std::to_chars(std::begin(buffer), std::end(buffer), value, std::chars_format::scientific).ptr;
  const std::string scientific(buffer, end);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent >= kFirstLargeExponent || exponent <= kLastSmallExponent) return scientific;
  end = std::to_chars(std::begin(buffer), std::end(buffer), value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string shown(1, quote);
  for (const char letter : text) {
    const unsigned char byte = static_cast<unsigned char>(letter);
    if (letter == quote || letter == '\\') {
      shown += '\\';
      shown += letter;
    } else if (letter == '\n') {
      shown += "\\n";
    } else if (letter == '\r') {
      shown += "\\r";
    } else if (letter == '\t') {
      shown += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += letter;
    }
  }
  return shown + quote;
}

std::string python_repr(const LogValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool truth) const { return truth ? "True" : "False"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return python_repr(number); }
    std::string operator()(const std::string& text) const { return python_repr(std::string_view(text)); }
  };
  return std::visit(Visitor{}, value);
}

double python_round(double value, int places) {
  if (!std::isfinite(value)) return value;
  // printf rounds the exact binary value, ties to even, as Python does; reading it back rounds correctly too.
  return std::strtod(fmt::format("{:.{}f}", value, places).c_str(), nullptr);
}

}  // namespace tessera
