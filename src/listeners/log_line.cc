#include "listeners/log_line.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/log_record.h"
#include "core/text.h"

namespace tessera {

namespace {

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

std::string format_dict(const LogRecord& record) {
  std::string text = "{";
  for (const auto& [key, value] : record.entries()) {
    if (text.size() > 1) text += ", ";
    text += python_repr(std::string_view(key)) + ": " + python_repr(value);
  }
  return text + "}";
}

constexpr std::string_view kMetricsLabel = "Evaluation Metrics";

}  // namespace

std::string format_log_line(const LogRecord& record) {
  LogRecord shown;
  for (const auto& [key, value] : record.entries()) {
    if (key == "total_flos") continue;
    const double* number = std::get_if<double>(&value);
    shown.set(key, key == "epoch" && number != nullptr ? LogValue(python_round(*number, 2)) : value);
  }
  return format_dict(shown);
}

std::string format_evaluation_metrics(const LogRecord& record) {
  return std::string(kMetricsLabel) + ": " + format_dict(record);
}

std::optional<LogLine> parse_log_line(std::string_view line) {
  const std::size_t begin = line.find("{'");
  if (begin == std::string_view::npos) return std::nullopt;
  std::optional<LogRecord> record = DictReader(line.substr(begin)).read();
  if (!record) return std::nullopt;
  const std::string_view before = trim(line.substr(0, begin));
  const bool labelled = before.size() > kMetricsLabel.size() && before.back() == ':' &&
                        before.substr(0, before.size() - 1).ends_with(kMetricsLabel);
  return LogLine{labelled ? std::string(kMetricsLabel) : "", std::move(*record)};
}

std::vector<LogLine> parse_log(std::string_view text) {
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
