#include "data/rows/arrow_support.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/command_output.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"

// By CMake, where the plug-in is built.
#ifndef TESSERA_PYARROW_VERSION
#define TESSERA_PYARROW_VERSION ""
#define TESSERA_PARQUET_LIBRARY ""
#endif

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOtherWay =
    "or write it as JSON lines: python3 -c \"import datasets, sys; datasets.load_dataset('parquet', "
    "data_files=sys.argv[1])['train'].to_json(sys.argv[2])\" FILE.parquet FILE.jsonl ('arrow' for Arrow files)";

// Of the environment that the program is installed in, then the active one.
std::vector<std::string> pythons(const Environment& environment) {
  std::vector<std::string> found;
  const fs::path starter = environment.find("TESSERA_STARTER").value_or("");
  if (!starter.empty() && is_file(starter.parent_path() / "python3"))
    found.push_back((starter.parent_path() / "python3").string());
  found.push_back("python3");
  return found;
}

struct LoadedArrow {
  const ArrowSupport* support = nullptr;
  std::string reason;
};

LoadedArrow load_arrow() {
  const fs::path path = own_folder() / "libtessera_arrow.so";
  const std::string built_for = TESSERA_PYARROW_VERSION;
  if (built_for.empty() || !is_there(path))
    return {nullptr, fmt::format("this Tessera was built without it: install the wheel, or build again after ./x setup "
                                 "has downloaded pyarrow, {}",
                                 kOtherWay)};
  // Local: nothing else here uses Arrow, and libtorch has libraries of the same names inside. Never closed.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string error = dlerror();
    const internal::FoundPyarrow found = internal::find_pyarrow(pythons(Environment::of_process()));
    const fs::path parquet = found.folder / TESSERA_PARQUET_LIBRARY;
    if (found.folder.empty() || !is_there(parquet)) return {nullptr, internal::no_pyarrow_text(found, built_for)};
    // It finds libarrow beside itself; the plug-in then takes both, since libraries are known by their own names.
    if (dlopen(parquet.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
      return {nullptr, fmt::format("{} cannot be loaded: {}", parquet.string(), dlerror())};
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {nullptr, fmt::format("{} cannot be loaded: {}", path.string(), error)};
  }
  const auto make = reinterpret_cast<ArrowSupportFunction>(dlsym(library, kArrowSupportSymbol));
  if (make == nullptr) return {nullptr, fmt::format("{} belongs to another version of Tessera", path.string())};
  return {make(), {}};
}

const LoadedArrow& loaded_arrow() {
  static const LoadedArrow once = load_arrow();
  return once;
}

}  // namespace

const ArrowSupport* arrow_support() {
  return loaded_arrow().support;
}
const std::string& no_arrow_reason() {
  return loaded_arrow().reason;
}

namespace internal {

FoundPyarrow find_pyarrow(const std::vector<std::string>& pythons) {
  // Not imported, which takes half a second. In the folder / since Python looks in the current one first.
  const std::string question =
      "import os; os.chdir('/')\n"
      "import importlib.metadata as m, importlib.util as u\n"
      "s = u.find_spec('pyarrow')\n"
      "print(s.submodule_search_locations[0] + '\\n' + m.version('pyarrow') if s else '')";
  for (const std::string& python : pythons) {
    try {
      const CommandOutput answer = command_output({python, "-c", question}, std::chrono::seconds(20));
      const std::vector<std::string> lines = split(std::string(trim(answer.out)), '\n');
      if (answer.status == 0 && lines.size() == 2) return {lines[0], lines[1]};
    } catch (const Error&) {  // a Python that hangs is none
    }
  }
  return {};
}

std::string no_pyarrow_text(const FoundPyarrow& found, const std::string& built_for) {
  const std::string what = found.folder.empty()
                               ? fmt::format("no pyarrow was found, and this Tessera reads by pyarrow {}", built_for)
                               : fmt::format("found pyarrow {} in {}, and this Tessera reads by pyarrow {}",
                                             found.version, found.folder.string(), built_for);
  return fmt::format("{}: pip install 'pyarrow=={}.*', {}", what, built_for, kOtherWay);
}

}  // namespace internal

}  // namespace tessera
