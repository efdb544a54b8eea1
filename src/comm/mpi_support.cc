#include "comm/mpi_support.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/open_mpi.h"
#include "comm/own_folder.h"
#include "core/error.h"

namespace tessera {
namespace {

struct Loaded {
  const MpiSupport* support = nullptr;
  std::string reason;
};

// Empty, or why not.
std::string load_libmpi(const OpenMpi& mpi) {
  // Global: its own plug-ins look for its symbols; never closed. If the program has one, that is the one.
  if (dlopen(kOpenMpiLibrary, RTLD_NOLOAD | RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  const std::string name = mpi.library.empty() ? kOpenMpiLibrary : mpi.library.string();
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  const std::string error = dlerror();
  if (!mpi.library.empty()) return fmt::format("{} cannot be loaded: {}", name, error);
  return fmt::format("no Open MPI ({}) was found: {}", name, advice_for_open_mpi(mpi));
}

Loaded load() {
  const auto path = own_folder() / "libtessera_mpi.so";
  if (!std::filesystem::exists(path)) return {nullptr, fmt::format("{} is missing: install again", path.string())};
  const std::string reason = load_libmpi(find_open_mpi(Environment::of_process()));
  if (!reason.empty()) return {nullptr, reason};
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return {nullptr, fmt::format("{} cannot be loaded: {}", path.string(), dlerror())};
  const auto make = reinterpret_cast<MpiSupportFunction>(dlsym(library, kMpiSupportSymbol));
  if (make == nullptr) return {nullptr, fmt::format("{} belongs to another version of Tessera", path.string())};
  return {make(), {}};
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

const MpiSupport* mpi_support() {
  return loaded().support;
}
const std::string& no_mpi_reason() {
  return loaded().reason;
}
std::string mpi_library_version() {
  return mpi_support() == nullptr ? "" : mpi_support()->version();
}
const MpiSupport& required_mpi() {
  if (mpi_support() == nullptr) throw rendezvous_error("CPU ranks communicate by MPI: " + no_mpi_reason());
  return *mpi_support();
}

}  // namespace tessera
