#include "data/arrow/structure_check.h"

#include <arrow/extension_type.h>

#include <vector>

#include "data/arrow/columns.h"

namespace tessera {
namespace {

using arrow::ArrayData;
using arrow::Type;
using DataType = std::shared_ptr<arrow::DataType>;

// The same type around other children.
DataType with_children(const DataType& type, const std::vector<DataType>& children) {
  arrow::FieldVector fields;
  for (std::size_t at = 0; at < children.size(); ++at)
    fields.push_back(type->field(static_cast<int>(at))->WithType(children[at]));
  switch (type->id()) {
    case Type::LIST:
      return arrow::list(fields[0]);
    case Type::LARGE_LIST:
      return arrow::large_list(fields[0]);
    case Type::LIST_VIEW:
      return arrow::list_view(fields[0]);
    case Type::LARGE_LIST_VIEW:
      return arrow::large_list_view(fields[0]);
    case Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(fields[0], static_cast<const arrow::FixedSizeListType&>(*type).list_size());
    case Type::MAP:
      return std::make_shared<arrow::MapType>(fields[0], static_cast<const arrow::MapType&>(*type).keys_sorted());
    case Type::STRUCT:
      return arrow::struct_(fields);
    default:
      return type;
  }
}

// A view of the same memory in which text is bytes, so that Arrow's own check does not look at its letters.
std::shared_ptr<ArrayData> with_text_as_bytes(const std::shared_ptr<ArrayData>& data) {
  std::shared_ptr<ArrayData> seen = data->Copy();
  while (seen->type->id() == Type::EXTENSION)
    seen->type = static_cast<const arrow::ExtensionType&>(*seen->type).storage_type();
  std::vector<DataType> children;
  for (auto& child : seen->child_data) {
    child = with_text_as_bytes(child);
    children.push_back(child->type);
  }
  switch (seen->type->id()) {
    case Type::STRING:
      seen->type = arrow::binary();
      break;
    case Type::LARGE_STRING:
      seen->type = arrow::large_binary();
      break;
    case Type::STRING_VIEW:
      seen->type = arrow::binary_view();
      break;
    case Type::DICTIONARY: {
      const auto& type = static_cast<const arrow::DictionaryType&>(*seen->type);
      seen->dictionary = with_text_as_bytes(seen->dictionary);
      seen->type = arrow::dictionary(type.index_type(), seen->dictionary->type, type.ordered());
      break;
    }
    default:
      seen->type = with_children(seen->type, children);
  }
  return seen;
}

}  // namespace

arrow::Status check_structure(const arrow::RecordBatch& batch) {
  // First its buffers, sizes and numbers of children, on which the second look relies.
  ARROW_RETURN_NOT_OK(batch.Validate());
  for (int index = 0; index < batch.num_columns(); ++index) {
    const arrow::Status status = arrow::MakeArray(with_text_as_bytes(batch.column_data(index)))->ValidateFull();
    if (!status.ok()) return status.WithMessage("column ", batch.column_name(index), ": ", status.message());
  }
  return arrow::Status::OK();
}

}  // namespace tessera
