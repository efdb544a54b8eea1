// Columns of rows under the names that Tessera knows, and under those that a file has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

// The file's name by Tessera's: {"prompt": "question"}. Those that are not in it have the same name.
using ColumnNames = std::map<std::string, std::string>;

// "prompt=question,completion=answer"; empty: none. Throws UsageError.
ColumnNames parse_columns(const std::string& text);

// One row, by Tessera's names. A null is the same as no value: Arrow has every column in every row.
class RowValues {
 public:
  // Both must outlive it.
  RowValues(const Json& row, const ColumnNames& names) : row_(row), names_(names) {}

  const Json* find(const std::string& column) const;  // nothing: null
  const Json& at(const std::string& column) const;    // refuses the row without it
  std::string text(const std::string& column) const;
  std::string text_or_nothing(const std::string& column) const;

  // "question: expected a text, found 3", by the file's name.
  [[noreturn]] void refuse(const std::string& column, const std::string& mistake) const;
  const std::string& name(const std::string& column) const;

 private:
  const Json& row_;
  const ColumnNames& names_;
};

}  // namespace tessera
