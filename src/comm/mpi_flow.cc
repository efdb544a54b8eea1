#include "comm/mpi_flow.h"

#include <fmt/format.h>

#include <algorithm>
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
  std::string hint;
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  if (error_class == MPI_ERR_TRUNCATE) hint = "; another rank sent more than this one expects: the sizes differ";
  throw Error(fmt::format("{}: {}{}", call, std::string(text, static_cast<std::size_t>(length)), hint),
              ExitStatus::kCollective);
}

void MpiBatch::send(const void* data, std::int64_t bytes, int to) {
  const auto* begin = static_cast<const std::byte*>(data);
  for (std::int64_t done = 0; done < bytes; done += kLargestMessage) {
    const int count = static_cast<int>(std::min(kLargestMessage, bytes - done));
    MPI_Request request;
    check_mpi(MPI_Isend(begin + done, count, MPI_BYTE, to, tag_, communicator_, &request), "MPI_Isend");
    add(request);
  }
}

void MpiBatch::receive(void* data, std::int64_t bytes, int from) {
  auto* begin = static_cast<std::byte*>(data);
  for (std::int64_t done = 0; done < bytes; done += kLargestMessage) {
    const int count = static_cast<int>(std::min(kLargestMessage, bytes - done));
    MPI_Request request;
    check_mpi(MPI_Irecv(begin + done, count, MPI_BYTE, from, tag_, communicator_, &request), "MPI_Irecv");
    add(request, from, count);
  }
}

void MpiBatch::add(MPI_Request request, int from, int bytes) {
  requests_.push_back(request);
  expected_.push_back({from, bytes});
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
  if (all_done == 0) return false;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (expected_[i].from < 0) continue;
    int received = 0;
    check_mpi(MPI_Get_count(&statuses_[i], MPI_BYTE, &received), "MPI_Get_count");
    if (received != expected_[i].bytes) {
      throw Error(fmt::format("expected a message of {} bytes from rank {} of the group, got {}: the sizes differ",
                              expected_[i].bytes, expected_[i].from, received),
                  ExitStatus::kCollective);
    }
  }
  requests_.clear();
  expected_.clear();
  return true;
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
