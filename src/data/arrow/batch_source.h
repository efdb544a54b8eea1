// The rows of a file in batches, as Arrow's readers give them.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/arrow/columns.h"

namespace tessera {

// Rows that are in memory, or mapped there. They have passed check_structure().
struct Batch {
  std::int64_t first_row = 0;
  std::shared_ptr<arrow::RecordBatch> rows;

  std::int64_t end() const { return first_row + rows->num_rows(); }
  bool has(std::int64_t row) const { return row >= first_row && row < end(); }
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  const ColumnSelection& columns() const { return columns_; }
  std::int64_t num_rows() const { return num_rows_; }
  // As TableFile's.
  virtual std::int64_t block_end(std::int64_t begin, std::int64_t num_bytes) const = 0;
  // The batch that holds this row, with the selected columns. Any number of threads.
  virtual arrow::Result<Batch> batch_of(std::int64_t row) = 0;
  // After rows were read that make so much JSON.
  virtual void was_read(std::size_t) {}

 protected:
  ColumnSelection columns_;
  std::int64_t num_rows_ = 0;
};

using MaybeSource = arrow::Result<std::unique_ptr<BatchSource>>;
// `columns`: as open_table_file()'s.
MaybeSource open_parquet(const std::filesystem::path& path, const std::vector<std::string>& columns);
MaybeSource open_arrow_file(const std::filesystem::path& path, const std::vector<std::string>& columns);
MaybeSource open_arrow_stream(const std::filesystem::path& path, const std::vector<std::string>& columns);

}  // namespace tessera
