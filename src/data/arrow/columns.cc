#include "data/arrow/columns.h"

#include <arrow/extension_type.h>
#include <arrow/util/utf8.h>

#include <algorithm>
#include <set>

namespace tessera {
namespace {

using arrow::Type;

// JSON is read to a depth of 256; Arrow's own limit for what it writes is 64.
constexpr int kMostLevels = 64;

bool is_text(const arrow::DataType& type) {
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING || type.id() == Type::STRING_VIEW;
}

bool can_be_json(const arrow::DataType& type, int level);

bool fields_can_be_json(const arrow::DataType& type, int level) {
  std::set<std::string> names;
  for (const auto& field : type.fields()) {
    if (!names.insert(field->name()).second || !arrow::util::ValidateUTF8(field->name())) return false;
    if (!can_be_json(*field->type(), level + 1)) return false;
  }
  return true;
}

bool can_be_json(const arrow::DataType& given, int level) {
  if (level > kMostLevels) return false;
  const arrow::DataType& type = storage_of(given);
  switch (type.id()) {
    case Type::NA:
    case Type::BOOL:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIMESTAMP:
    case Type::TIME32:
    case Type::TIME64:
      return true;
    case Type::DICTIONARY:
      return can_be_json(*static_cast<const arrow::DictionaryType&>(type).value_type(), level + 1);
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::LIST_VIEW:
    case Type::LARGE_LIST_VIEW:
    case Type::STRUCT:
      return fields_can_be_json(type, level);
    case Type::MAP: {
      const auto& map = static_cast<const arrow::MapType&>(type);
      return is_text(*map.key_type()) && can_be_json(*map.item_type(), level + 1);
    }
    default:
      return is_text(type) || arrow::is_numeric(type.id()) || arrow::is_decimal(type.id());
  }
}

std::string shown(const arrow::Field& field) {
  return field.name() + " (" + field.type()->ToString() + ")";
}

std::string listed(const arrow::Schema& schema) {
  std::string names;
  for (const std::string& name : schema.field_names()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

const arrow::DataType& storage_of(const arrow::DataType& type) {
  if (type.id() != Type::EXTENSION) return type;
  return storage_of(*static_cast<const arrow::ExtensionType&>(type).storage_type());
}

bool is_json(const arrow::Field& field) {
  constexpr const char* kName = "arrow.json";
  if (field.type()->id() == Type::EXTENSION)
    return static_cast<const arrow::ExtensionType&>(*field.type()).extension_name() == kName;
  // As it stands in the file, where Arrow does not know the type.
  return field.metadata() != nullptr && field.metadata()->Get("ARROW:extension:name").ValueOr("") == kName;
}

arrow::Result<ColumnSelection> select_columns(const arrow::Schema& schema, const std::vector<std::string>& wanted) {
  ColumnSelection selection;
  for (const std::string& name : wanted) {
    if (schema.GetFieldIndex(name) < 0 && schema.GetAllFieldIndices(name).empty())
      return arrow::Status::Invalid("there is no column ", name, "; there are ", listed(schema));
  }
  for (int index = 0; index < schema.num_fields(); ++index) {
    const arrow::Field& field = *schema.field(index);
    const bool is_named = std::find(wanted.begin(), wanted.end(), field.name()) != wanted.end();
    if (!wanted.empty() && !is_named) continue;
    if (!arrow::util::ValidateUTF8(field.name())) return arrow::Status::Invalid("the name of a column is not UTF-8");
    if (schema.GetAllFieldIndices(field.name()).size() > 1)
      return arrow::Status::Invalid("there are two columns ", field.name());
    if (can_be_json(*field.type(), 1)) {
      selection.indices.push_back(index);
      selection.names.push_back(field.name());
    } else if (is_named) {
      return arrow::Status::Invalid("column ", shown(field), " is not read: JSON has no form for it");
    } else {
      selection.left_out.push_back(shown(field));
    }
  }
  if (selection.indices.empty()) {
    return arrow::Status::Invalid("it has no column that can be read",
                                  selection.left_out.empty() ? "" : ", only " + listed(schema));
  }
  return selection;
}

}  // namespace tessera
