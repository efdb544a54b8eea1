#include "data/rows/table_file.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tessera {

std::shared_ptr<const TableFile> open_table_file(const std::filesystem::path& path) {
  const bool is_parquet = path.extension() == ".parquet";
  throw UsageError(
      fmt::format("{}: {} files cannot be read yet; write JSON lines once, in Python: datasets.Dataset.from_{}(\"{}\")"
                  ".to_json(\"train.jsonl\"), and use train.jsonl",
                  path.string(), is_parquet ? "Parquet" : "Arrow", is_parquet ? "parquet" : "file", path.string()));
}

}  // namespace tessera
