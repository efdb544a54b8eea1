#include "data/rows/row_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/text.h"

namespace tessera {

namespace {

const std::vector<std::string>& known_columns() {
  static const std::vector<std::string> columns = {
      "text",          "prompt",   "completion", "instruction", "input",
      "output",        "history",  "system",     "messages",    "tools",
      "conversations", "question", "context",    "answers",     "chat_template_kwargs"};
  return columns;
}

}  // namespace

ColumnNames parse_columns(const std::string& text) {
  ColumnNames names;
  if (trim(text).empty()) return names;
  const auto refuse = [&](const std::string& mistake) {
    throw UsageError(fmt::format("--columns {}: {}", printable(text), mistake));
  };
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      refuse(fmt::format("expected NAME=COLUMN, such as prompt=question, found '{}'", printable(part)));
    }
    const std::string name(trim(std::string_view(part).substr(0, equals)));
    const std::string column(trim(std::string_view(part).substr(equals + 1)));
    if (std::ranges::find(known_columns(), name) == known_columns().end()) {
      refuse(fmt::format("expected one of {} before '=', found '{}'{}", join(known_columns(), ", "), printable(name),
                         did_you_mean(name, known_columns())));
    }
    if (column.empty()) refuse(fmt::format("expected the name of a column after '{}='", name));
    if (!names.emplace(name, column).second) refuse(fmt::format("{} is given twice", name));
  }
  return names;
}

const std::string& RowValues::name(const std::string& column) const {
  const auto found = names_.find(column);
  return found == names_.end() ? column : found->second;
}

const Json* RowValues::find(const std::string& column) const {
  // A column that is mapped to another name no longer counts under its own.
  const bool is_mapped_away =
      !names_.contains(column) && std::ranges::any_of(names_, [&](const auto& pair) { return pair.second == column; });
  const auto found = is_mapped_away ? row_.end() : row_.find(name(column));
  return found == row_.end() || found->is_null() ? nullptr : &*found;
}

const Json& RowValues::at(const std::string& column) const {
  const Json* value = find(column);
  if (value == nullptr) refuse(column, row_.contains(name(column)) ? "expected a value, found null" : "is missing");
  return *value;
}

std::string RowValues::text(const std::string& column) const {
  const Json& value = at(column);
  if (!value.is_string()) refuse(column, fmt::format("expected a text, found {}", shown(value)));
  return value.get<std::string>();
}

std::string RowValues::text_or_nothing(const std::string& column) const {
  return find(column) == nullptr ? "" : text(column);
}

void RowValues::refuse(const std::string& column, const std::string& mistake) const {
  throw UsageError(fmt::format("{}: {}", printable(name(column), 60), mistake));
}

}  // namespace tessera
