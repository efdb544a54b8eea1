// Parquet and Arrow files, as JSON lines of any of their rows.
//
// Apache Arrow's C++ library reads them. It is loaded with the first such file (data/rows/arrow_support.h) and shows
// none of its types here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

class TableFile {
 public:
  virtual ~TableFile() = default;

  virtual std::int64_t num_rows() const = 0;
  // In the file's order, each of which every line has.
  virtual const std::vector<std::string>& columns() const = 0;
  // Those that are not read, since JSON has no form for them: "image (struct<bytes: binary, path: string>)".
  virtual const std::vector<std::string>& left_out_columns() const = 0;

  // The best end of a block that begins at row `begin` and should be read from about `num_bytes` of the file, before
  // any compression: where the file itself has a border, so that no two blocks decode the same bytes. More than
  // `begin`, at most num_rows().
  virtual std::int64_t block_end(std::int64_t begin, std::int64_t num_bytes) const = 0;

  // Rows begin to end - 1, one object and line feed each. Rows are read fastest in ascending order; threads may take
  // turns. Any number of threads. Throws UsageError naming the file and, where one value is at fault, its row (from 0)
  // and column.
  virtual std::string read_json_lines(std::int64_t begin, std::int64_t end) const = 0;
};

// Parquet, and Arrow's file and streaming formats: the content decides, not the name. With `columns`, only these are
// read, in the file's order. Throws UsageError if the file is damaged, has no such column or none that can be read, or
// if there is no Arrow library that fits.
std::unique_ptr<TableFile> open_table_file(const std::filesystem::path& path,
                                           const std::vector<std::string>& columns = {});

}  // namespace tessera
