// Reads back the log lines that listeners/console_text.h writes: {'loss': 4.895, 'grad_norm': 81.5, 'epoch': 4.0}
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log_record.h"
#include "core/text.h"

namespace tessera {

struct LogLine {
  std::string label;  // "Evaluation Metrics", or empty
  LogRecord record;
};

// Reads one Python dict of plain values. Any deviation gives none.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  std::optional<LogRecord> read() {
    LogRecord record;
    if (!take('{')) return std::nullopt;
    if (take('}')) return record;
    while (true) {
      const std::optional<std::string> key = quoted();
      if (!key || !take(':')) return std::nullopt;
      const std::optional<LogValue> value = plain_value();
      if (!value) return std::nullopt;
      record.set(*key, *value);
      if (take('}')) return record;
      if (!take(',')) return std::nullopt;
    }
  }

 private:
  bool take(char wanted) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }

  std::optional<std::string> quoted() {
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return value;
      }
      if (text_[at_] != '\\') {
        value += text_[at_];
      } else if (!escaped(value)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  // At a backslash; leaves at_ on the last letter of the escape.
  bool escaped(std::string& value) {
    if (++at_ >= text_.size()) return false;
    switch (text_[at_]) {
      case 'n':
        value += '\n';
        return true;
      case 'r':
        value += '\r';
        return true;
      case 't':
        value += '\t';
        return true;
      case 'x': {
        if (at_ + 2 >= text_.size()) return false;
        const std::string digits(text_.substr(at_ + 1, 2));
        if (!std::isxdigit(static_cast<unsigned char>(digits[0])) ||
            !std::isxdigit(static_cast<unsigned char>(digits[1]))) {
          return false;
        }
        value += static_cast<char>(std::stoi(digits, nullptr, 16));
        at_ += 2;
        return true;
      }
      case '\\':
      case '\'':
      case '"':
        value += text_[at_];
        return true;
      default:
        return false;
    }
  }

  std::optional<LogValue> plain_value() {
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
      if (std::optional<std::string> text = quoted()) return LogValue(std::move(*text));
      return std::nullopt;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}' && text_[at_] != ' ') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "None") return LogValue(std::monostate{});
    if (word == "True" || word == "False") return LogValue(word == "True");
    if (word == "nan") return LogValue(std::numeric_limits<double>::quiet_NaN());
    if (word == "inf") return LogValue(std::numeric_limits<double>::infinity());
    if (word == "-inf") return LogValue(-std::numeric_limits<double>::infinity());
    if (const auto whole = parse_integer(word)) return LogValue(static_cast<std::int64_t>(*whole));
    if (const auto real = parse_real(word)) return LogValue(*real);
    return std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Reads a line of this form, whatever precedes it (a progress bar that shares the line, "Evaluation Metrics:"). None if
// the line holds no complete Python dict of plain values with string keys.
inline std::optional<LogLine> parse_log_line(std::string_view line) {
  constexpr std::string_view kMetricsLabel = "Evaluation Metrics";
  const std::size_t begin = line.find("{'");
  if (begin == std::string_view::npos) return std::nullopt;
  std::optional<LogRecord> record = DictReader(line.substr(begin)).read();
  if (!record) return std::nullopt;
  const std::string_view before = trim(line.substr(0, begin));
  const bool labelled = before.size() > kMetricsLabel.size() && before.back() == ':' &&
                        before.substr(0, before.size() - 1).ends_with(kMetricsLabel);
  return LogLine{labelled ? std::string(kMetricsLabel) : "", std::move(*record)};
}

// All such lines of a job's output, in order; progress bars and other text between them are skipped.
inline std::vector<LogLine> parse_log(std::string_view text) {
  std::vector<LogLine> lines;
  while (!text.empty()) {
    // A progress bar rewrites its line after a carriage return.
    const std::size_t length = std::min(text.find_first_of("\r\n"), text.size());
    if (auto line = parse_log_line(text.substr(0, length))) lines.push_back(std::move(*line));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

}  // namespace tessera
