// The messages of one operation: what it sends and receives, and what its coroutine waits for.
//
// Used by the progress thread alone.
#pragma once

#include <mpi.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace tessera {

// Throws Error(kCollective) with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// A number of messages that are waited for together.
class MpiBatch {
 public:
  MpiBatch(MPI_Comm communicator, int tag) : communicator_(communicator), tag_(tag) {}

  // Messages above 1 GiB are cut: MPI counts in int. Empty ones are not sent.
  void send(const void* data, std::int64_t bytes, int to);
  void receive(void* data, std::int64_t bytes, int from);
  void add(MPI_Request request, int from = -1, int bytes = 0);

  // All have ended. Throws when one failed, or brought fewer bytes than expected: the ranks disagree about the size.
  bool test();

 private:
  struct Expected {
    int from;  // -1: nothing to check
    int bytes;
  };
  MPI_Comm communicator_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<Expected> expected_;
  std::vector<MPI_Status> statuses_;
};

// Memory where messages land, kept from one operation to the next: fresh pages would cost more than a small all-reduce.
class MpiScratch {
 public:
  std::byte* at_least(std::int64_t bytes) {
    if (bytes > bytes_) {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::int64_t bytes_ = 0;
};

// What a coroutine hands to the progress thread: itself, and the batch that it waits for.
class MpiFlow {
 public:
  // `landing` must outlive the flow; no other operation uses it meanwhile.
  MpiFlow(MPI_Comm comm, int message_tag, int group_rank, int group_size, MpiScratch& landing)
      : communicator(comm), tag(message_tag), rank(group_rank), size(group_size), scratch(landing) {}

  const MPI_Comm communicator;
  const int tag;
  const int rank, size;
  MpiScratch& scratch;

  // A second kind of message of the same operation; above every other tag (mpi_runtime.cc).
  static constexpr int kSecondTag = 1 << 24;
  MpiBatch batch(int more_tag = 0) const { return MpiBatch(communicator, tag | more_tag); }

  // co_await flow.all(batch): goes on when every message of it has ended.
  auto all(MpiBatch& batch) {
    struct Awaiter {
      MpiFlow& flow;
      MpiBatch& batch;
      bool await_ready() { return batch.test(); }
      void await_suspend(std::coroutine_handle<> handle) {
        flow.waiting_ = handle;
        flow.awaited_ = &batch;
      }
      void await_resume() {
        if (flow.error_) std::rethrow_exception(std::exchange(flow.error_, nullptr));
      }
    };
    return Awaiter{*this, batch};
  }

  // One look at the awaited batch; resumes the coroutine when it is complete or failed. True when it went on.
  bool advance();

 private:
  std::coroutine_handle<> waiting_;
  MpiBatch* awaited_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace tessera
