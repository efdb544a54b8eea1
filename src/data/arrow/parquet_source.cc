// Parquet: each row group is decoded once from its start to its end, batch by batch, by whichever thread needs the next
// one; a row group has no other place to start at. Batches that a thread skips wait in the cache for those who read
// the blocks before.
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "data/arrow/batch_cache.h"
#include "data/arrow/batch_source.h"
#include "data/arrow/structure_check.h"

namespace tessera {
namespace {

// What a batch should decode to: a few make a block, and every thread holds one.
constexpr std::int64_t kBatchBytes = std::int64_t{1} << 20;
// Dictionaries may make rows look smaller than they are.
constexpr std::int64_t kMostBatchRows = 8192;
// Bytes of one column that are read from the file at once: its pages lie one behind the other.
constexpr std::int64_t kReadBytes = std::int64_t{256} << 10;
// Row groups that are read at the same time; each holds a page of every column.
constexpr std::size_t kMostCursors = 64;

struct Group {
  std::int64_t first_row = 0, num_rows = 0;
  std::int64_t num_bytes = 0;  // decompressed
  std::int64_t batch_rows = 1;

  std::int64_t end() const { return first_row + num_rows; }
};

// How far a row group has been decoded.
struct Cursor {
  std::mutex mutex;
  std::unique_ptr<parquet::arrow::FileReader> file;
  std::unique_ptr<arrow::RecordBatchReader> batches;  // uses `file`
  std::int64_t next_row = 0;
};

class ParquetSource : public BatchSource {
 public:
  arrow::Status open(const std::filesystem::path& path, const std::vector<std::string>& columns);
  std::int64_t block_end(std::int64_t begin, std::int64_t num_bytes) const override;
  arrow::Result<Batch> batch_of(std::int64_t row) override;

 private:
  arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> make_reader(std::int64_t batch_rows) const;
  arrow::Status list_groups();
  const Group& group_of(std::int64_t row) const;
  std::shared_ptr<Cursor> cursor_of(const Group& group);
  arrow::Status restart(Cursor& cursor, const Group& group) const;
  arrow::Result<Batch> decode_until(Cursor& cursor, const Group& group, std::int64_t row);

  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<int> leaves_;  // the columns as Parquet counts them: the leaves of nested ones
  std::vector<Group> groups_;
  BatchCache cache_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Cursor>> cursors_;  // by the group's first row
};

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.column_index >= 0) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

arrow::Status ParquetSource::open(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  // Read, not mapped: what was read of a large file need not stay in memory.
  ARROW_ASSIGN_OR_RAISE(file_, arrow::io::ReadableFile::Open(path.string(), arrow::system_memory_pool()));
  ARROW_ASSIGN_OR_RAISE(const auto reader, make_reader(1));
  metadata_ = reader->parquet_reader()->metadata();
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
  ARROW_ASSIGN_OR_RAISE(columns_, select_columns(*schema, columns));
  for (const int index : columns_.indices)
    add_leaves(reader->manifest().schema_fields.at(static_cast<std::size_t>(index)), leaves_);
  return list_groups();
}

arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> ParquetSource::make_reader(std::int64_t batch_rows) const {
  parquet::ReaderProperties reading(arrow::system_memory_pool());
  reading.enable_buffered_stream();
  reading.set_buffer_size(kReadBytes);
  reading.set_page_checksum_verification(true);  // where the file has them
  parquet::ArrowReaderProperties converting(/*use_threads=*/false);
  converting.set_pre_buffer(false);
  converting.set_batch_size(batch_rows);
  converting.set_arrow_extensions_enabled(true);  // so that JSON is known as such
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(file_, reading, metadata_));
  builder.memory_pool(arrow::system_memory_pool())->properties(converting);
  return builder.Build();
}

arrow::Status ParquetSource::list_groups() {
  for (int index = 0; index < metadata_->num_row_groups(); ++index) {
    const auto row_group = metadata_->RowGroup(index);
    Group group{num_rows_, row_group->num_rows(), std::max<std::int64_t>(row_group->total_byte_size(), 1)};
    if (group.num_rows < 0 || group.num_rows > metadata_->num_rows() - num_rows_)
      return arrow::Status::Invalid("its row groups have other numbers of rows than the file");
    num_rows_ += group.num_rows;
    const std::int64_t row_bytes =
        std::max<std::int64_t>(group.num_bytes / std::max<std::int64_t>(group.num_rows, 1), 1);
    group.batch_rows = std::clamp<std::int64_t>(kBatchBytes / row_bytes, 1, kMostBatchRows);
    groups_.push_back(group);
  }
  if (num_rows_ != metadata_->num_rows())
    return arrow::Status::Invalid("its row groups have other numbers of rows than the file");
  return arrow::Status::OK();
}

const Group& ParquetSource::group_of(std::int64_t row) const {
  return *std::partition_point(groups_.begin(), groups_.end(),
                               [row](const Group& group) { return group.end() <= row; });
}

std::int64_t ParquetSource::block_end(std::int64_t begin, std::int64_t num_bytes) const {
  const Group& group = group_of(begin);
  const std::int64_t row_bytes = std::max<std::int64_t>(group.num_bytes / group.num_rows, 1);
  const std::int64_t num_batches = std::max<std::int64_t>(num_bytes / row_bytes / group.batch_rows, 1);
  const std::int64_t first_batch = (begin - group.first_row) / group.batch_rows;
  // Not first_batch + num_batches: the product may be larger than any row.
  if (num_batches > group.num_rows / group.batch_rows - first_batch) return group.end();
  return std::min(group.first_row + (first_batch + num_batches) * group.batch_rows, group.end());
}

arrow::Result<Batch> ParquetSource::batch_of(std::int64_t row) {
  if (const auto found = cache_.find(row)) return *found;
  const Group& group = group_of(row);
  const auto cursor = cursor_of(group);
  const std::lock_guard lock(cursor->mutex);
  if (const auto found = cache_.find(row)) return *found;  // another thread came by
  if (cursor->batches == nullptr || row < cursor->next_row) ARROW_RETURN_NOT_OK(restart(*cursor, group));
  arrow::Result<Batch> batch = decode_until(*cursor, group, row);
  if (!batch.ok() || cursor->next_row >= group.end()) {
    const std::lock_guard list_lock(mutex_);
    cursor->batches = nullptr;
    cursor->file = nullptr;
    cursors_.erase(group.first_row);
  }
  return batch;
}

std::shared_ptr<Cursor> ParquetSource::cursor_of(const Group& group) {
  const std::lock_guard lock(mutex_);
  if (cursors_.size() >= kMostCursors && !cursors_.contains(group.first_row)) cursors_.erase(cursors_.begin());
  auto& cursor = cursors_[group.first_row];
  if (cursor == nullptr) cursor = std::make_shared<Cursor>();
  return cursor;
}

arrow::Status ParquetSource::restart(Cursor& cursor, const Group& group) const {
  cursor.batches = nullptr;
  ARROW_ASSIGN_OR_RAISE(cursor.file, make_reader(group.batch_rows));
  const int index = static_cast<int>(&group - groups_.data());
  ARROW_ASSIGN_OR_RAISE(cursor.batches, cursor.file->GetRecordBatchReader({index}, leaves_));
  cursor.next_row = group.first_row;
  return arrow::Status::OK();
}

arrow::Result<Batch> ParquetSource::decode_until(Cursor& cursor, const Group& group, std::int64_t row) {
  for (;;) {
    Batch batch{cursor.next_row, nullptr};
    ARROW_RETURN_NOT_OK(cursor.batches->ReadNext(&batch.rows));
    if (batch.rows == nullptr || batch.end() > group.end())
      return arrow::Status::Invalid("a row group has another number of rows than it says");
    ARROW_RETURN_NOT_OK(check_structure(*batch.rows));
    cursor.next_row = batch.end();
    if (batch.rows->num_rows() > 0) cache_.put(batch, batch.has(row));
    if (batch.has(row)) return batch;
  }
}

}  // namespace

MaybeSource open_parquet(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  auto source = std::make_unique<ParquetSource>();
  ARROW_RETURN_NOT_OK(source->open(path, columns));
  return source;
}

}  // namespace tessera
