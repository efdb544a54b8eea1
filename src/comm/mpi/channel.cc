#include "comm/mpi/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;

constexpr int kNameLength = 64;
// With more, a slot would be smaller than a page: all signals and no data.
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

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(fmt::format("{}: {}", call, std::string(text, static_cast<std::size_t>(length))),
              ExitStatus::kCollective);
}

int MpiMark::tag_of(std::int64_t bytes) const {
  // splitmix64's last steps: every bit of the key and the size reaches the 23 bits that are kept.
  std::uint64_t x = key + static_cast<std::uint64_t>(bytes) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<int>(x >> 41) | flags;
}

void MpiBatch::send(const void* data, std::int64_t bytes, int to) {
  const auto* begin = static_cast<const std::byte*>(data);
  for (std::int64_t done = 0; done < bytes; done += kLargestMessage) {
    const int count = static_cast<int>(std::min(kLargestMessage, bytes - done));
    MPI_Request request;
    check_mpi(MPI_Isend(begin + done, count, MPI_BYTE, to, mark_.tag_of(count), communicator_, &request), "MPI_Isend");
    add(request);
  }
}

void MpiBatch::receive(void* data, std::int64_t bytes, int from) {
  auto* begin = static_cast<std::byte*>(data);
  for (std::int64_t done = 0; done < bytes; done += kLargestMessage) {
    const int count = static_cast<int>(std::min(kLargestMessage, bytes - done));
    MPI_Request request;
    check_mpi(MPI_Irecv(begin + done, count, MPI_BYTE, from, mark_.tag_of(count), communicator_, &request),
              "MPI_Irecv");
    add(request);
  }
}

void MpiBatch::send_signal(std::int64_t bytes, int to) {
  std::atomic_thread_fence(
      std::memory_order_release);  // the data that the signal announces is written before it leaves
  MPI_Request request;
  check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, to, mark_.tag_of(bytes), communicator_, &request), "MPI_Isend");
  add(request);
}

void MpiBatch::receive_signal(std::int64_t bytes, int from) {
  MPI_Request request;
  check_mpi(MPI_Irecv(nullptr, 0, MPI_BYTE, from, mark_.tag_of(bytes), communicator_, &request), "MPI_Irecv");
  add(request);
}

bool MpiBatch::test() {
  if (requests_.empty()) return true;
  statuses_.resize(requests_.size());
  int all_done = 0;
  const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all_done, statuses_.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses_) {
      if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, "MPI");
    }
  }
  check_mpi(code, "MPI_Testall");
  if (all_done != 0) {
    requests_.clear();
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  return all_done != 0;
}

bool MpiChannel::advance() {
  try {
    if (!awaited_->test()) return false;
  } catch (...) {
    error_ = std::current_exception();
  }
  waiting_.resume();
  return true;
}

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
