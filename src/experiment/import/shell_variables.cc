#include "experiment/import/shell_variables.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "experiment/import/shell_arithmetic.h"

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

  std::vector<ShellValue> take() {
    finish();
    return std::move(done_);
  }

 private:
  ShellValue current_;
  bool is_open_ = false;
  std::vector<ShellValue> done_;
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
    throw UsageError(fmt::format("a value of the script has more than {} bytes: {}...", kMostBytes,
                                 printable(text.substr(0, 40), 40)));
  }
}

void ShellVariables::set(const std::string& name, std::vector<ShellValue> values, const std::string& place) {
  Variable& variable = variables_[name];
  variable.values = std::move(values);
  variable.place = place;
}

void ShellVariables::mark_exported(const std::string& name) {
  variables_[name].is_exported = true;
}

void ShellVariables::unset(const std::string& name) {
  variables_.erase(name);
}

const ShellVariables::Variable* ShellVariables::find(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() || found->second.values.empty() ? nullptr : &found->second;
}

std::vector<ShellValue> ShellVariables::expand(const ShellWord& word) const {
  Fields fields;
  for (const WordPart& part : word.parts) {
    if (part.kind == WordPart::Kind::kText) {
      fields.grow({part.text});
      continue;
    }
    const std::vector<ShellValue> values = values_of(part);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) fields.finish();
      fields.add_text(values[i], part.is_quoted);
    }
  }
  return fields.take();
}

ShellValue ShellVariables::expand_whole(const ShellWord& word) const {
  ShellValue whole;
  for (const WordPart& part : word.parts) {
    if (part.kind == WordPart::Kind::kText) {
      whole.append({part.text});
      continue;
    }
    const std::vector<ShellValue> values = values_of(part);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) whole.append({" "});
      whole.append(values[i]);
    }
  }
  return whole;
}

std::vector<ShellValue> ShellVariables::expand_elements(const ShellWord& word) const {
  std::vector<ShellValue> all;
  for (const ShellWord& element : word.elements) {
    for (ShellValue& value : expand(element)) all.push_back(std::move(value));
  }
  return all;
}

std::vector<ShellValue> ShellVariables::values_of(const WordPart& part) const {
  switch (part.kind) {
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
  const bool is_empty = variable == nullptr || (variable->values[0].is_known() && variable->values[0].text.empty());
  if (part.fallback && part.fallback->size() > kMostFallbackBytes) {
    return {{printable(part.source, 60), "its fallback is too long"}};
  }
  if (part.fallback && is_empty) return {expand_whole(split_quoted(without_quotes(*part.fallback), "the script"))};
  if (variable == nullptr) {
    if (wants_all) return {};
    const bool is_slurms = name.starts_with("SLURM_");
    return {{part.source, is_slurms ? fmt::format("${} is known only while the job runs", name)
                                    : fmt::format("${} is not set in the script", name)}};
  }
  return wants_all ? variable->values : std::vector<ShellValue>{variable->values[0]};
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

}  // namespace tessera
