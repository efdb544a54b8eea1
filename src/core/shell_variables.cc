#include "core/shell_variables.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

// Lines such as A=$A$A$A grow a value without bound: no setting is that long.
constexpr std::size_t kMostBytes = 65536;
constexpr std::size_t kMostFallbackBytes = 4096;  // a fallback may hold another one

// ${NAME:-"a b"}: the quotes are not part of the value.
std::string_view without_quotes(std::string_view text) {
  const bool is_quoted =
      text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// The words of one expansion, built piece by piece.
class Fields {
 public:
  void add_text(const ShellValue& value, bool is_quoted) {
    if (!is_quoted && !value.pieces.empty()) {
      for (const ShellValue& piece : value.pieces) add_text(piece, false);
      return;
    }
    if (is_quoted || !value.is_known()) return grow(value);
    // An unquoted value is cut at its blanks.
    std::string piece;
    for (const char c : value.text) {
      if (c != ' ' && c != '\t' && c != '\n') {
        piece += c;
        continue;
      }
      if (!piece.empty()) grow({piece});
      piece.clear();
      finish();
    }
    if (!piece.empty()) grow({piece});
  }

  void finish() {
    if (is_open_) done_.push_back(std::move(current_));
    current_ = {};
    is_open_ = false;
  }

  void grow(const ShellValue& value) {
    current_.append(value);
    is_open_ = true;
  }

  ShellValues take() {
    finish();
    return std::move(done_);
  }

 private:
  ShellValue current_;
  bool is_open_ = false;
  ShellValues done_;
};

// Numbers of job scripts are small; beyond this a script is not counting nodes.
constexpr long long kMostCounted = 1'000'000'000'000;
constexpr int kMostBrackets = 64;

class ArithmeticReader {
 public:
  using ValueOf = std::function<std::optional<long long>(const std::string&)>;
  using Number = std::optional<long long>;

  ArithmeticReader(std::string_view text, const ValueOf& value_of) : text_(text), value_of_(value_of) {}

  Number read() {
    const Number value = sum();
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() { at_ = std::min(text_.find_first_not_of(" \t\n", at_), text_.size()); }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static Number bounded(long long value) {
    return value > kMostCounted || value < -kMostCounted ? std::nullopt : Number(value);
  }

  Number sum() {
    Number left = product();
    while (left) {
      const bool adds = take('+');
      if (!adds && !take('-')) return left;
      const Number right = product();
      if (!right) return right;
      left = bounded(adds ? *left + *right : *left - *right);
    }
    return left;
  }

  Number product() {
    Number left = factor();
    while (left) {
      const char sign = take('*') ? '*' : take('/') ? '/' : take('%') ? '%' : '\0';
      if (sign == '\0') return left;
      const Number right = factor();
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      if (sign == '*') {
        const double size = static_cast<double>(*left) * static_cast<double>(*right);
        if (size > kMostCounted || size < -kMostCounted) return std::nullopt;
        left = *left * *right;
      } else {
        left = sign == '/' ? *left / *right : *left % *right;
      }
    }
    return left;
  }

  Number factor() {
    if (take('(')) {
      if (++depth_ > kMostBrackets) return std::nullopt;
      const Number inner = sum();
      return take(')') ? inner : std::nullopt;
    }
    const bool is_variable = take('$');
    const bool has_brace = is_variable && take('{');
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_in_shell_name(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty() || (has_brace && !take('}'))) return std::nullopt;
    const Number number = parse_integer(word);
    const Number value = number ? number : value_of_(word);
    return value ? bounded(*value) : value;
  }

  std::string_view text_;
  const ValueOf& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

void ShellValue::append(const ShellValue& more) {
  if (!is_known() || !more.is_known()) {
    if (pieces.empty() && !text.empty()) pieces.push_back({text, unknown});
    if (more.pieces.empty()) pieces.push_back(more);
    pieces.insert(pieces.end(), more.pieces.begin(), more.pieces.end());
  }
  text += more.text;
  if (unknown.empty()) unknown = more.unknown;
  if (text.size() > kMostBytes) {
    throw UsageError(fmt::format("a value has more than {} bytes", kMostBytes));  // it may be a secret
  }
}

void ShellVariables::set(const std::string& name, ShellValues values, const std::string& place) {
  Variable& variable = variables_[name];
  variable.values = std::move(values);
  variable.place = place;
}

const ShellVariables::Variable* ShellVariables::find(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() || found->second.values.empty() ? nullptr : &found->second;
}

ShellValues ShellVariables::expand(const ShellWord& word) const {
  Fields fields;
  for (const WordPart& part : word.parts) {
    const ShellValues values = values_of(part);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) fields.finish();
      fields.add_text(values[i], part.is_quoted || part.kind == WordPart::Kind::kText);
    }
  }
  return fields.take();
}

ShellValue ShellVariables::expand_whole(const ShellWord& word) const {
  ShellValue whole;
  for (const WordPart& part : word.parts) {
    const ShellValues values = values_of(part);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) whole.append({" "});
      whole.append(values[i]);
    }
  }
  return whole;
}

ShellValues ShellVariables::expand_assigned(ShellWord word) const {
  if (word.is_array) {
    ShellValues all;
    for (const ShellWord& element : word.elements) {
      for (ShellValue& value : expand(element)) all.push_back(std::move(value));
    }
    return all;
  }
  std::string& text = word.parts[0].text;
  text.erase(0, text.find('=') + 1);
  const bool is_home = text.starts_with("~/") || (text == "~" && word.parts.size() == 1);
  if (!is_home) return {expand_whole(word)};
  text.erase(0, 1);
  word.parts.insert(word.parts.begin(), {WordPart::Kind::kVariable, "HOME", true, std::nullopt, "~"});
  return {expand_whole(word)};
}

ShellValues ShellVariables::values_of(const WordPart& part) const {
  switch (part.kind) {
    case WordPart::Kind::kText:
      return {{part.text}};
    case WordPart::Kind::kArithmetic:
      return {value_of_arithmetic(part)};
    case WordPart::Kind::kCommand:
      if (const Variable* here = find("PWD"); here != nullptr && trim(part.text) == "pwd") return here->values;
      return {{part.source, fmt::format("{} would have to be executed", printable(part.source, 60))}};
    case WordPart::Kind::kOther:
      return {{part.source, fmt::format("{} is known to a shell only", printable(part.source, 60))}};
    default:
      break;
  }
  const bool wants_all = part.text.ends_with("[@]");
  const std::string name = wants_all ? part.text.substr(0, part.text.size() - 3) : part.text;
  const Variable* variable = find(name);
  const ShellValues values = variable == nullptr ? values_outside(part, name) : variable->values;
  const bool is_set = variable != nullptr || (!values.empty() && values[0].is_known());
  const bool is_empty = !is_set || (values[0].is_known() && values[0].text.empty());
  if (part.fallback && part.fallback->size() > kMostFallbackBytes) {
    return {{printable(part.source, 60), "its fallback is too long"}};
  }
  if (part.fallback && is_empty) return {expand_whole(split_quoted(without_quotes(*part.fallback), "the script"))};
  if (wants_all) return is_set ? values : ShellValues{};
  return {values[0]};
}

ShellValues ShellVariables::values_outside(const WordPart& part, const std::string& name) const {
  if (environment_ != nullptr) {
    if (const auto value = environment_->find(name)) return {{*value}};
    return {{part.source, fmt::format("${} is set neither earlier in the file nor in the environment", name)}};
  }
  return {{part.source, name.starts_with("SLURM_") ? fmt::format("${} is known only while the job runs", name)
                                                   : fmt::format("${} is not set in the script", name)}};
}

ShellValue ShellVariables::value_of_arithmetic(const WordPart& part) const {
  const auto number = shell_arithmetic(part.text, [&](const std::string& name) -> std::optional<long long> {
    const Variable* variable = find(name);
    if (variable == nullptr || !variable->values[0].is_known()) return std::nullopt;
    return parse_integer(variable->values[0].text);
  });
  if (number) return {std::to_string(*number)};
  return {part.source, fmt::format("{} cannot be computed without a shell", printable(part.source, 60))};
}

std::optional<long long> shell_arithmetic(std::string_view text,
                                          const std::function<std::optional<long long>(const std::string&)>& value_of) {
  return ArithmeticReader(text, value_of).read();
}

}  // namespace tessera
