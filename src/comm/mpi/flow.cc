#include "comm/mpi/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {
constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;
}

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

void MpiBatch::send_word(std::int64_t bytes, int to) {
  std::atomic_thread_fence(std::memory_order_release);  // the data that the word announces is written before it leaves
  MPI_Request request;
  check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, to, mark_.tag_of(bytes), communicator_, &request), "MPI_Isend");
  add(request);
}

void MpiBatch::receive_word(std::int64_t bytes, int from) {
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

bool MpiFlow::advance() {
  try {
    if (!awaited_->test()) return false;
  } catch (...) {
    error_ = std::current_exception();
  }
  waiting_.resume();
  return true;
}

}  // namespace tessera
