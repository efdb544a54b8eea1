#include "data/arrow/json_values.h"

#include <arrow/extension_type.h>
#include <arrow/util/float16.h>

#include <vector>

#include "data/arrow/columns.h"
#include "data/arrow/json_text.h"

namespace tessera {
namespace {

using arrow::Type;

// A writer of a single function, for values that need nothing but themselves.
template <typename Array, typename Put>
class PlainWriter : public ValueWriter {
 public:
  PlainWriter(std::shared_ptr<arrow::Array> array, Put put) : ValueWriter(std::move(array)), put_(std::move(put)) {}

 private:
  void write_valid(std::int64_t index, std::string& out) const override { put_(as<Array>(), index, out); }

  Put put_;
};
template <typename Array>
std::unique_ptr<ValueWriter> plain(std::shared_ptr<arrow::Array> array, auto put) {
  return std::make_unique<PlainWriter<Array, decltype(put)>>(std::move(array), std::move(put));
}

template <typename Array>
std::unique_ptr<ValueWriter> integers(std::shared_ptr<arrow::Array> array) {
  return plain<Array>(std::move(array), [](const Array& from, std::int64_t index, std::string& out) {
    put_number(from.Value(index), out);
  });
}
template <typename Array>
std::unique_ptr<ValueWriter> reals(std::shared_ptr<arrow::Array> array) {
  return plain<Array>(std::move(array), [](const Array& from, std::int64_t index, std::string& out) {
    put_real(from.Value(index), out);
  });
}
template <typename Array>
std::unique_ptr<ValueWriter> texts(std::shared_ptr<arrow::Array> array, bool are_json) {
  return plain<Array>(std::move(array), [are_json](const Array& from, std::int64_t index, std::string& out) {
    const std::string_view text = from.GetView(index);
    are_json ? put_json(text, out) : put_string(text, out);
  });
}
template <typename Array>
std::unique_ptr<ValueWriter> decimals(std::shared_ptr<arrow::Array> array) {
  return plain<Array>(std::move(array), [](const Array& from, std::int64_t index, std::string& out) {
    out += '"' + from.FormatValue(index) + '"';
  });
}
template <typename Array, typename TimeType>
std::unique_ptr<ValueWriter> times(std::shared_ptr<arrow::Array> array) {
  const auto unit = static_cast<const TimeType&>(*array->type()).unit();
  return plain<Array>(std::move(array), [unit](const Array& from, std::int64_t index, std::string& out) {
    put_time(from.Value(index), unit, out);
  });
}

template <typename Array>
class ListWriter : public ValueWriter {
 public:
  ListWriter(const std::shared_ptr<arrow::Array>& array)
      : ValueWriter(array), values_(make_writer(as<Array>().values(), *array->type()->field(0))) {}

 private:
  void write_valid(std::int64_t index, std::string& out) const override {
    const std::int64_t begin = as<Array>().value_offset(index), end = begin + as<Array>().value_length(index);
    out += '[';
    for (std::int64_t at = begin; at < end; ++at) {
      if (at > begin) out += ',';
      values_->write(at, out);
    }
    out += ']';
  }

  std::unique_ptr<ValueWriter> values_;
};

class StructWriter : public ValueWriter {
 public:
  StructWriter(const std::shared_ptr<arrow::Array>& array) : ValueWriter(array) {
    for (int at = 0; at < array->type()->num_fields(); ++at) {
      const arrow::Field& field = *array->type()->field(at);
      std::string key = at == 0 ? "" : ",";
      put_string(field.name(), key);
      members_.push_back({key + ':', make_writer(as<arrow::StructArray>().field(at), field)});
    }
  }

 private:
  void write_valid(std::int64_t index, std::string& out) const override {
    out += '{';
    for (const Member& member : members_) {
      out += member.key;
      member.writer->write(index, out);
    }
    out += '}';
  }

  struct Member {
    std::string key;  // with what stands around it
    std::unique_ptr<ValueWriter> writer;
  };
  std::vector<Member> members_;
};

class MapWriter : public ValueWriter {
 public:
  MapWriter(const std::shared_ptr<arrow::Array>& array)
      : ValueWriter(array),
        keys_(make_writer(map().keys(), *map().map_type()->key_field())),
        items_(make_writer(map().items(), *map().map_type()->item_field())) {}

 private:
  const arrow::MapArray& map() const { return as<arrow::MapArray>(); }

  void write_valid(std::int64_t index, std::string& out) const override {
    const std::int64_t begin = map().value_offset(index), end = begin + map().value_length(index);
    out += '{';
    for (std::int64_t at = begin; at < end; ++at) {
      if (map().keys()->IsNull(at)) throw ValueMistake("holds a map with a key that is null");
      if (at > begin) out += ',';
      keys_->write(at, out);
      out += ':';
      items_->write(at, out);
    }
    out += '}';
  }

  std::unique_ptr<ValueWriter> keys_, items_;
};

class DictionaryWriter : public ValueWriter {
 public:
  DictionaryWriter(const std::shared_ptr<arrow::Array>& array, const arrow::Field& field)
      : ValueWriter(array),
        values_(make_writer(as<arrow::DictionaryArray>().dictionary(),
                            *field.WithType(as<arrow::DictionaryArray>().dictionary()->type()))) {}

 private:
  void write_valid(std::int64_t index, std::string& out) const override {
    values_->write(as<arrow::DictionaryArray>().GetValueIndex(index), out);
  }

  std::unique_ptr<ValueWriter> values_;
};

std::unique_ptr<ValueWriter> make_nested_writer(const std::shared_ptr<arrow::Array>& array, const arrow::Field& field) {
  switch (array->type_id()) {
    case Type::LIST:
      return std::make_unique<ListWriter<arrow::ListArray>>(array);
    case Type::LARGE_LIST:
      return std::make_unique<ListWriter<arrow::LargeListArray>>(array);
    case Type::FIXED_SIZE_LIST:
      return std::make_unique<ListWriter<arrow::FixedSizeListArray>>(array);
    case Type::LIST_VIEW:
      return std::make_unique<ListWriter<arrow::ListViewArray>>(array);
    case Type::LARGE_LIST_VIEW:
      return std::make_unique<ListWriter<arrow::LargeListViewArray>>(array);
    case Type::STRUCT:
      return std::make_unique<StructWriter>(array);
    case Type::MAP:
      return std::make_unique<MapWriter>(array);
    case Type::DICTIONARY:
      return std::make_unique<DictionaryWriter>(array, field);
    default:
      throw ValueMistake("is of type " + array->type()->ToString() + ", which is not read");
  }
}

// Days, dates and times.
std::unique_ptr<ValueWriter> make_time_writer(const std::shared_ptr<arrow::Array>& array, const arrow::Field& field) {
  switch (array->type_id()) {
    case Type::DATE32:
      return plain<arrow::Date32Array>(
          array, [](const auto& from, std::int64_t index, std::string& out) { put_date(from.Value(index), out); });
    case Type::DATE64:  // milliseconds
      return plain<arrow::Date64Array>(array, [](const auto& from, std::int64_t index, std::string& out) {
        const std::int64_t time = from.Value(index), day = 86400000;
        put_date(time / day - (time % day < 0 ? 1 : 0), out);
      });
    case Type::TIME32:
      return times<arrow::Time32Array, arrow::Time32Type>(array);
    case Type::TIME64:
      return times<arrow::Time64Array, arrow::Time64Type>(array);
    case Type::TIMESTAMP: {
      const auto& type = static_cast<const arrow::TimestampType&>(*array->type());
      return plain<arrow::TimestampArray>(array, [unit = type.unit(), has_zone = !type.timezone().empty()](
                                                     const auto& from, std::int64_t index, std::string& out) {
        put_timestamp(from.Value(index), unit, has_zone, out);
      });
    }
    default:
      return make_nested_writer(array, field);
  }
}

}  // namespace

std::unique_ptr<ValueWriter> make_writer(const std::shared_ptr<arrow::Array>& array, const arrow::Field& field) {
  switch (array->type_id()) {
    case Type::EXTENSION: {
      const auto& storage = static_cast<const arrow::ExtensionArray&>(*array).storage();
      if (!is_json(field)) return make_writer(storage, *field.WithType(storage->type()));
      const auto name = arrow::key_value_metadata({"ARROW:extension:name"}, {"arrow.json"});
      return make_writer(storage, *arrow::field(field.name(), storage->type(), true, name));
    }
    case Type::NA:
      return plain<arrow::NullArray>(array, [](const auto&, std::int64_t, std::string& out) { out += "null"; });
    case Type::BOOL:
      return plain<arrow::BooleanArray>(array, [](const auto& from, std::int64_t index, std::string& out) {
        out += from.Value(index) ? "true" : "false";
      });
    case Type::INT8:
      return integers<arrow::Int8Array>(array);
    case Type::INT16:
      return integers<arrow::Int16Array>(array);
    case Type::INT32:
      return integers<arrow::Int32Array>(array);
    case Type::INT64:
      return integers<arrow::Int64Array>(array);
    case Type::UINT8:
      return integers<arrow::UInt8Array>(array);
    case Type::UINT16:
      return integers<arrow::UInt16Array>(array);
    case Type::UINT32:
      return integers<arrow::UInt32Array>(array);
    case Type::UINT64:
      return integers<arrow::UInt64Array>(array);
    case Type::HALF_FLOAT:
      return plain<arrow::HalfFloatArray>(array, [](const auto& from, std::int64_t index, std::string& out) {
        put_real(arrow::util::Float16::FromBits(from.Value(index)).ToDouble(), out);
      });
    case Type::FLOAT:
      return reals<arrow::FloatArray>(array);
    case Type::DOUBLE:
      return reals<arrow::DoubleArray>(array);
    case Type::STRING:
      return texts<arrow::StringArray>(array, is_json(field));
    case Type::LARGE_STRING:
      return texts<arrow::LargeStringArray>(array, is_json(field));
    case Type::STRING_VIEW:
      return texts<arrow::StringViewArray>(array, is_json(field));
    case Type::DECIMAL32:
      return decimals<arrow::Decimal32Array>(array);
    case Type::DECIMAL64:
      return decimals<arrow::Decimal64Array>(array);
    case Type::DECIMAL128:
      return decimals<arrow::Decimal128Array>(array);
    case Type::DECIMAL256:
      return decimals<arrow::Decimal256Array>(array);
    default:
      return make_time_writer(array, field);
  }
}

}  // namespace tessera
