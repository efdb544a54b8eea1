// The plug-in's door: files as TableFile, Arrow's reasons as UsageError. No exception of Arrow's and none of its types
// leaves this file.
#include <arrow/util/utf8.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "core/error.h"
#include "data/arrow/batch_source.h"
#include "data/arrow/json_text.h"
#include "data/arrow/json_values.h"
#include "data/rows/arrow_support.h"

namespace tessera {
namespace {

// In one line of text, though it may quote the file's bytes.
std::string reason_of(const arrow::Status& status) {
  std::string text = status.message();
  if (!arrow::util::ValidateUTF8(text)) text = "damaged (Arrow's reason quotes bytes that are no text)";
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < 0x20; }, ' ');
  return text;
}

// Calls what may throw Arrow's and the library's exceptions, and throws ours.
auto guarded(const std::string& origin, const auto& call) -> decltype(call()) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    refuse_file(origin, "not enough memory to read it, or its sizes are damaged");
  } catch (const std::exception& error) {
    refuse_file(origin, reason_of(arrow::Status::Invalid(error.what())));
  }
}

template <typename Value>
Value value_or_refuse(const std::string& origin, arrow::Result<Value> result) {
  if (!result.ok()) refuse_file(origin, reason_of(result.status()));
  return std::move(result).ValueUnsafe();
}

// Rows from to end - 1 of the file, all in the batch.
void put_rows(const std::string& origin, const Batch& batch, std::int64_t from, std::int64_t end, std::string& out) {
  struct Column {
    std::string key;  // with what stands before it
    std::unique_ptr<ValueWriter> writer;
  };
  std::vector<Column> columns;
  for (int index = 0; index < batch.rows->num_columns(); ++index) {
    const arrow::Field& field = *batch.rows->schema()->field(index);
    std::string key = index == 0 ? "{" : ",";
    put_string(field.name(), key);
    columns.push_back({key + ':', make_writer(batch.rows->column(index), field)});
  }
  for (std::int64_t row = from; row < end; ++row) {
    std::size_t at = 0;
    try {
      for (; at < columns.size(); ++at) {
        out += columns[at].key;
        columns[at].writer->write(row - batch.first_row, out);
      }
    } catch (const ValueMistake& mistake) {
      refuse_file(origin, "row " + std::to_string(row) + " (from 0): column " +
                              batch.rows->column_name(static_cast<int>(at)) + " " + mistake.what());
    }
    out += "}\n";
  }
}

class ArrowTable : public TableFile {
 public:
  ArrowTable(std::string origin, std::unique_ptr<BatchSource> source)
      : origin_(std::move(origin)), source_(std::move(source)) {}

  std::int64_t num_rows() const override { return source_->num_rows(); }
  const std::vector<std::string>& columns() const override { return source_->columns().names; }
  const std::vector<std::string>& left_out_columns() const override { return source_->columns().left_out; }

  std::int64_t block_end(std::int64_t begin, std::int64_t num_bytes) const override {
    if (begin < 0 || begin >= num_rows()) return num_rows();
    return source_->block_end(begin, num_bytes);
  }

  std::string read_json_lines(std::int64_t begin, std::int64_t end) const override {
    if (begin < 0 || end < begin || end > num_rows())
      refuse_file(origin_, "rows " + std::to_string(begin) + " to " + std::to_string(end) + " were asked for, of " +
                               std::to_string(num_rows()));
    return guarded(origin_, [&] {
      std::string lines;
      for (std::int64_t row = begin; row < end;) {
        const Batch batch = value_or_refuse(origin_, source_->batch_of(row));
        const std::int64_t last = std::min(end, batch.end());
        put_rows(origin_, batch, row, last, lines);
        row = last;
      }
      source_->was_read(lines.size());
      return lines;
    });
  }

 private:
  std::string origin_;
  std::unique_ptr<BatchSource> source_;
};

MaybeSource open_source(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  char start[12] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof start);
  const std::string_view text(start, sizeof start);
  if (text.starts_with("PAR1") || text.starts_with("PARE")) return open_parquet(path, columns);
  if (text.starts_with("ARROW1")) return open_arrow_file(path, columns);
  if (text.starts_with("\xff\xff\xff\xff")) return open_arrow_stream(path, columns);
  if (text.starts_with("version http"))
    return arrow::Status::Invalid("it is a pointer of Git LFS, not the file itself: git lfs pull fetches it");
  return arrow::Status::Invalid("it does not begin as Parquet or Arrow files do");
}

class Support : public ArrowSupport {
 public:
  std::unique_ptr<TableFile> open_table(const std::filesystem::path& path,
                                        const std::vector<std::string>& columns) const override {
    const std::string origin = path.string();
    return guarded(origin, [&]() -> std::unique_ptr<TableFile> {
      arrow::util::InitializeUTF8();
      return std::make_unique<ArrowTable>(origin, value_or_refuse(origin, open_source(path, columns)));
    });
  }
};

}  // namespace
}  // namespace tessera

extern "C" __attribute__((visibility("default"))) const tessera::ArrowSupport* tessera_arrow_support() {
  static const tessera::Support support;
  return &support;
}
