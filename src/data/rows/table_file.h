// Tables of rows in binary files: Parquet and Arrow, as `datasets` and the hub store them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace tessera {

// Immutable after it was opened: any number of threads read from one. What is wrong with a file throws UsageError that
// names it.
class TableFile {
 public:
  virtual ~TableFile() = default;

  virtual std::int64_t num_rows() const = 0;

  // Where a block of rows that begins at `begin` ends: after about `block_bytes` bytes of JSON, preferably at the end
  // of a part that the file reads at once (a row group, a record batch). A function of the file alone, between
  // begin + 1 and num_rows().
  virtual std::int64_t block_end(std::int64_t begin, std::size_t block_bytes) const = 0;

  // The rows [begin, end) as JSON lines: one object per row, columns in the file's order, '\n' after each.
  virtual std::string read_rows(std::int64_t begin, std::int64_t end) const = 0;
};

// By its ending: .parquet or .arrow.
std::shared_ptr<const TableFile> open_table_file(const std::filesystem::path& path);

}  // namespace tessera
