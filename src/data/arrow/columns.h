// Which columns of a file are read, and which cannot be.
#pragma once

#include <arrow/api.h>

#include <string>
#include <vector>

namespace tessera {

struct ColumnSelection {
  std::vector<int> indices;           // in the file's schema
  std::vector<std::string> names;     // of these
  std::vector<std::string> left_out;  // "image (struct<bytes: binary, path: string>)"
};

// `wanted`: empty for all that can be read. The reason names a column.
arrow::Result<ColumnSelection> select_columns(const arrow::Schema& schema, const std::vector<std::string>& wanted);

// A field whose strings are JSON texts: `datasets` stores values of mixed types so (tool calls, say).
bool is_json(const arrow::Field& field);

// What is stored: without the extension's type around it.
const arrow::DataType& storage_of(const arrow::DataType& type);

}  // namespace tessera
