#include "comm/mpi/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "comm/mpi/flow.h"

namespace tessera {
namespace {

constexpr int kNameLength = 64;
// With more, a slot would be smaller than a page: all words and no data.
constexpr int kMostRanks = 256;

bool on_one_host(MPI_Comm communicator, int size) {
  MPI_Comm host;
  check_mpi(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  int host_size = 0;
  MPI_Comm_size(host, &host_size);
  MPI_Comm_free(&host);
  return host_size == size;
}

bool everybody(MPI_Comm communicator, bool own) {
  int good = own ? 1 : 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, communicator), "MPI_Allreduce");
  return good != 0;
}

// Reserves the memory, not only the name: a host without enough fails here instead of with a signal later.
int open_new(const char* name, std::size_t bytes) {
  const int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  shm_unlink(name);
  return -1;
}

void* map(int file, std::size_t bytes) {
  void* const base = file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  return base;
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::create(MPI_Comm communicator) {
  int rank = 0, size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  if (size == 1 || size > kMostRanks || !on_one_host(communicator, size)) return nullptr;
  const auto bytes = static_cast<std::size_t>(size * segment_bytes());
  static std::atomic<int> num_made{0};
  char name[kNameLength] = {};
  void* base = MAP_FAILED;
  if (rank == 0) {
    fmt::format_to_n(name, kNameLength - 1, "/tessera-{}-{}", getpid(), num_made++);
    base = map(open_new(name, bytes), bytes);
  }
  check_mpi(MPI_Bcast(name, kNameLength, MPI_CHAR, 0, communicator), "MPI_Bcast");
  if (rank != 0) base = map(shm_open(name, O_RDWR | O_CLOEXEC, 0), bytes);
  const bool good = everybody(communicator, base != MAP_FAILED);
  if (rank == 0) shm_unlink(name);  // the maps keep it; a process that dies leaves nothing behind
  if (good) return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<std::byte*>(base), bytes));
  if (base != MAP_FAILED) munmap(base, bytes);
  return nullptr;
}

SharedMemory::~SharedMemory() {
  munmap(base_, bytes_);
}

}  // namespace tessera
