// Preloaded into ranks, corrupts the messages that they send, as a broken network card would: for the test of
// comm-test's check.
#include <mpi.h>

// Changes one bit of every message above 32 KB; short ones, which carry the ranks' agreements, stay intact.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
                         MPI_Request* request) {
  constexpr int kShort = 32 * 1024;
  if (count > kShort) static_cast<unsigned char*>(const_cast<void*>(data))[count / 2] ^= 1;
  return PMPI_Isend(data, count, type, to, tag, communicator, request);
}
