// Arrow's file and streaming formats, mapped into memory: a batch that is not compressed is not copied either.
#include <arrow/io/file.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/reader.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>

#include "data/arrow/batch_cache.h"
#include "data/arrow/batch_source.h"
#include "data/arrow/structure_check.h"

namespace tessera {
namespace {

using arrow::ipc::Message;
using arrow::ipc::MessageType;
using MaybeRows = arrow::Result<std::shared_ptr<arrow::RecordBatch>>;

arrow::ipc::IpcReadOptions reading(std::vector<int> columns) {
  arrow::ipc::IpcReadOptions options;
  options.memory_pool = arrow::system_memory_pool();
  options.use_threads = false;
  options.included_fields = std::move(columns);
  // A writer that does not align numbers in the file is rare; ours may not be read where they are not.
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

// After so many bytes of rows, the pages that were read leave the process; the system may keep them in its cache.
constexpr std::size_t kMostMappedBytes = std::size_t{256} << 20;

// What both formats share: batches of any size, each of which can be read by its number.
class MappedSource : public BatchSource {
 public:
  std::int64_t block_end(std::int64_t begin, std::int64_t num_bytes) const override {
    const std::int64_t row_bytes = std::max<std::int64_t>(mapping_->size() / num_rows_, 1);
    const std::int64_t num_wanted = std::max<std::int64_t>(num_bytes / row_bytes, 1);
    if (num_wanted >= num_rows_ - begin) return num_rows_;
    // A border of two batches if there is one in the second half.
    const std::int64_t border = *(std::upper_bound(starts_.begin(), starts_.end(), begin + num_wanted) - 1);
    return border > begin + num_wanted / 2 ? border : begin + num_wanted;
  }

  arrow::Result<Batch> batch_of(std::int64_t row) override {
    if (const auto found = cache_.find(row)) return *found;
    const std::lock_guard lock(mutex_);
    if (const auto found = cache_.find(row)) return *found;
    const auto start = std::upper_bound(starts_.begin(), starts_.end(), row) - 1;
    Batch batch{*start, nullptr};
    ARROW_ASSIGN_OR_RAISE(batch.rows, read(static_cast<int>(start - starts_.begin())));
    if (!batch.has(row)) return arrow::Status::Invalid("the file has changed");
    ARROW_RETURN_NOT_OK(check_structure(*batch.rows));
    cache_.put(batch, /*is_used=*/true);
    return batch;
  }

  void was_read(std::size_t num_bytes) override {
    if ((num_read_bytes_ += num_bytes) < kMostMappedBytes) return;
    num_read_bytes_ = 0;
    // Whoever reads there now finds them again in the cache.
    madvise(const_cast<std::uint8_t*>(mapping_->data()), static_cast<std::size_t>(mapping_->size()), MADV_DONTNEED);
  }

 protected:
  virtual MaybeRows read(int batch) = 0;

  arrow::Result<std::shared_ptr<arrow::io::MemoryMappedFile>> map_file(const std::filesystem::path& path) {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::MemoryMappedFile::Open(path.string(), arrow::io::FileMode::READ));
    ARROW_ASSIGN_OR_RAISE(const std::int64_t num_bytes, file->GetSize());
    ARROW_ASSIGN_OR_RAISE(mapping_, file->ReadAt(0, num_bytes));
    return file;
  }

  arrow::Status add_batch(std::int64_t num_rows) {
    if (num_rows < 0 || num_rows > std::numeric_limits<std::int64_t>::max() - num_rows_)
      return arrow::Status::Invalid("a batch has an impossible number of rows");
    starts_.push_back(num_rows_);
    num_rows_ += num_rows;
    return arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::Buffer> mapping_;  // all of the file, from the start of a page
  std::atomic<std::size_t> num_read_bytes_ = 0;
  std::vector<std::int64_t> starts_;  // first row of each batch; an empty one has that of the next
  BatchCache cache_;
  std::mutex mutex_;  // Arrow's readers are for one thread
};

class ArrowFileSource : public MappedSource {
 public:
  arrow::Status open(const std::filesystem::path& path, const std::vector<std::string>& columns) {
    ARROW_ASSIGN_OR_RAISE(const auto file, map_file(path));
    // The first column alone, to count rows: where the batches are compressed, it is all that is decompressed.
    using Reader = arrow::ipc::RecordBatchFileReader;
    ARROW_ASSIGN_OR_RAISE(const auto counter, Reader::Open(file, reading({0})));
    ARROW_ASSIGN_OR_RAISE(reader_, Reader::Open(file, reading({})));
    ARROW_ASSIGN_OR_RAISE(columns_, select_columns(*reader_->schema(), columns));
    for (int batch = 0; batch < counter->num_record_batches(); ++batch) {
      ARROW_ASSIGN_OR_RAISE(const auto rows, counter->ReadRecordBatch(batch));
      ARROW_RETURN_NOT_OK(add_batch(rows->num_rows()));
    }
    return arrow::Status::OK();
  }

 private:
  // Of a batch of whole columns Arrow gives parts of the mapping; of some columns, copies.
  MaybeRows read(int batch) override {
    ARROW_ASSIGN_OR_RAISE(const auto rows, reader_->ReadRecordBatch(batch));
    return rows->SelectColumns(columns_.indices);
  }

  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
};

// A stream has no index, but its messages tell how long they are: they are listed once, and Arrow's reader of streams
// is then given those that one batch needs.
class ChosenMessages : public arrow::ipc::MessageReader {
 public:
  explicit ChosenMessages(std::vector<const Message*> messages) : messages_(std::move(messages)) {}
  arrow::Result<std::unique_ptr<Message>> ReadNextMessage() override {
    if (next_ == messages_.size()) return nullptr;
    const Message& message = *messages_[next_++];
    return Message::Open(message.metadata(), message.body());
  }

 private:
  std::vector<const Message*> messages_;
  std::size_t next_ = 0;
};

class ArrowStreamSource : public MappedSource {
 public:
  arrow::Status open(const std::filesystem::path& path, const std::vector<std::string>& columns) {
    ARROW_ASSIGN_OR_RAISE(const auto file, map_file(path));
    ARROW_RETURN_NOT_OK(list_messages(*file));
    arrow::ipc::DictionaryMemo dictionaries;
    ARROW_ASSIGN_OR_RAISE(const auto schema, arrow::ipc::ReadSchema(*messages_.front(), &dictionaries));
    ARROW_ASSIGN_OR_RAISE(columns_, select_columns(*schema, columns));
    for (int batch = 0; batch < static_cast<int>(batches_.size()); ++batch) {
      ARROW_ASSIGN_OR_RAISE(const auto rows, read_columns(batch, {0}));
      ARROW_RETURN_NOT_OK(add_batch(rows->num_rows()));
    }
    return arrow::Status::OK();
  }

 private:
  arrow::Status list_messages(arrow::io::MemoryMappedFile& file) {
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(const std::int64_t start, file.Tell());
      ARROW_ASSIGN_OR_RAISE(auto message, arrow::ipc::ReadMessage(&file, arrow::system_memory_pool()));
      if (message == nullptr) return check_end(file, start);
      if (messages_.empty() != (message->type() == MessageType::SCHEMA))
        return arrow::Status::Invalid("a schema is expected at its start, and only there");
      if (message->type() == MessageType::RECORD_BATCH) batches_.push_back(messages_.size());
      messages_.push_back(std::move(message));
    }
  }

  // A stream may also end with its file, but writers of files do not end them so: rows may be missing.
  arrow::Status check_end(arrow::io::MemoryMappedFile& file, std::int64_t start) const {
    ARROW_ASSIGN_OR_RAISE(const auto mark, file.ReadAt(start, 4));
    if (messages_.empty()) return arrow::Status::Invalid("it has no schema");
    if (mark->size() == 4) return arrow::Status::OK();
    return arrow::Status::Invalid("it has no end: it is cut off, or still being written");
  }

  MaybeRows read(int batch) override { return read_columns(batch, columns_.indices); }

  MaybeRows read_columns(int batch, const std::vector<int>& columns) const {
    const std::size_t number = batches_[static_cast<std::size_t>(batch)];
    std::vector<const Message*> chosen;
    for (std::size_t at = 0; at < number; ++at) {
      // A later dictionary replaces an earlier one, or adds to it.
      if (messages_[at]->type() != MessageType::RECORD_BATCH) chosen.push_back(messages_[at].get());
    }
    chosen.push_back(messages_[number].get());
    ARROW_ASSIGN_OR_RAISE(const auto reader,
                          arrow::ipc::RecordBatchStreamReader::Open(std::make_unique<ChosenMessages>(std::move(chosen)),
                                                                    reading(columns)));
    std::shared_ptr<arrow::RecordBatch> rows;
    ARROW_RETURN_NOT_OK(reader->ReadNext(&rows));
    if (rows == nullptr) return arrow::Status::Invalid("a batch is missing");
    return rows;
  }

  std::vector<std::unique_ptr<Message>> messages_;  // parts of the mapped file
  std::vector<std::size_t> batches_;                // which of them are batches
};

template <typename Source>
MaybeSource open(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  auto source = std::make_unique<Source>();
  ARROW_RETURN_NOT_OK(source->open(path, columns));
  return source;
}

}  // namespace

MaybeSource open_arrow_file(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  return open<ArrowFileSource>(path, columns);
}
MaybeSource open_arrow_stream(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  return open<ArrowStreamSource>(path, columns);
}

}  // namespace tessera
