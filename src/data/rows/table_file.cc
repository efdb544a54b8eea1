#include "data/rows/table_file.h"

#include "core/error.h"
#include "data/rows/arrow_support.h"

namespace tessera {

std::unique_ptr<TableFile> open_table_file(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  const ArrowSupport* support = arrow_support();
  if (support == nullptr) refuse_file(path.string(), "reading it needs Apache Arrow's library: " + no_arrow_reason());
  return support->open_table(path, columns);
}

}  // namespace tessera
