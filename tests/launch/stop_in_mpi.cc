// Preloaded into ranks, stops rank 1 for good when it reaches the MPI call that TEST_STOP_IN names: MPI_Init_thread or
// MPI_Finalize. If TEST_STOP_IN is the name of a program, that one stops before its main().
#include <errno.h>
#include <mpi.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

void stop_in(const char* call) {
  const char* const wanted = std::getenv("TEST_STOP_IN");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (wanted != nullptr && rank != nullptr && std::strcmp(wanted, call) == 0 && std::strcmp(rank, "1") == 0) {
    std::raise(SIGSTOP);
  }
}

[[gnu::constructor]] void stop_before_main() {
  const char* const wanted = std::getenv("TEST_STOP_IN");
  if (wanted != nullptr && std::strcmp(wanted, program_invocation_short_name) == 0) std::raise(SIGSTOP);
}

}  // namespace

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  stop_in("MPI_Init_thread");
  return PMPI_Init_thread(argc, argv, required, provided);
}

extern "C" int MPI_Finalize() {
  stop_in("MPI_Finalize");
  return PMPI_Finalize();
}
