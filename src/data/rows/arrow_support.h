// Apache Arrow's C++ library, behind one interface.
//
// libtessera.so does not link it: only Parquet and Arrow files need it, and PyPI's pyarrow, which holds it, is 55 MB.
// The first call loads libtessera_arrow.so, which lies beside libtessera.so and is built for one minor version of
// pyarrow (the name of its libraries, libarrow.so.2600, changes with the next). That version is looked for beside the
// program and where the program was built, which are the plug-in's own RPATH, then in the Python that is active.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/rows/table_file.h"

namespace tessera {

class ArrowSupport {
 public:
  virtual ~ArrowSupport() = default;
  // As open_table_file().
  virtual std::unique_ptr<TableFile> open_table(const std::filesystem::path& path,
                                                const std::vector<std::string>& columns) const = 0;
};

// Null if there is no library that fits; `no_arrow_reason()` then says why, and what to do. Loads the library on the
// first call; thread-safe.
const ArrowSupport* arrow_support();
const std::string& no_arrow_reason();

// What libtessera_arrow.so exports under this name.
inline constexpr const char* kArrowSupportSymbol = "tessera_arrow_support";
using ArrowSupportFunction = const ArrowSupport* (*)();

namespace internal {

// A pyarrow of some Python.
struct FoundPyarrow {
  std::filesystem::path folder{};  // of its libraries; empty: none
  std::string version{};           // "26.0.1"
};
// `pythons`: programs, the first that has a pyarrow decides.
FoundPyarrow find_pyarrow(const std::vector<std::string>& pythons);

// Why this pyarrow cannot serve a plug-in that is built for pyarrow `built_for` ("26.0"), and what to do.
std::string no_pyarrow_text(const FoundPyarrow& found, const std::string& built_for);

}  // namespace internal

}  // namespace tessera
