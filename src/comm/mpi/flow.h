// The messages of one operation: what it sends and receives, and what its coroutine waits for.
//
// Used by the thread that carries out operations (runtime.h), one at a time.
#pragma once

#include <mpi.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "comm/mpi/shared_memory.h"

namespace tessera {

// Throws Error(kCollective) with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// What an operation's messages are marked with. The tag of each message is a hash of the operation, its number and the
// message's size: ranks that disagree about any of them never receive each other's data (Open MPI 4.1 writes beyond the
// end of a buffer that is too small). They wait until the watchdog reports the difference.
struct MpiMark {
  std::uint64_t key = 0;
  // Users' messages (send, recv) and the second kind of message within one operation have their own tags.
  static constexpr int kPointToPoint = 1 << 23, kSecond = 1 << 24;
  int flags = 0;

  int tag_of(std::int64_t bytes) const;
};

// Several messages that are waited for together.
class MpiBatch {
 public:
  MpiBatch(MPI_Comm communicator, MpiMark mark) : communicator_(communicator), mark_(mark) {}

  // Messages above 1 GiB are cut: MPI counts in int. Empty ones are not sent.
  void send(const void* data, std::int64_t bytes, int to);
  void receive(void* data, std::int64_t bytes, int from);
  // Signals, by an empty message, that something of `bytes` has happened to memory that both can read.
  void send_word(std::int64_t bytes, int to);
  void receive_word(std::int64_t bytes, int from);
  void add(MPI_Request request) { requests_.push_back(request); }

  // True when all have ended. Throws if one failed.
  bool test();

 private:
  MPI_Comm communicator_;
  MpiMark mark_;
  std::vector<MPI_Request> requests_;
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
  // `landing` and `shared_memory` (null if the group has none) must outlive the flow; no other operation uses them
  // meanwhile.
  MpiFlow(MPI_Comm comm, MpiMark message_mark, int group_rank, int group_size, MpiScratch& landing,
          const SharedMemory* shared_memory)
      : communicator(comm),
        mark(message_mark),
        rank(group_rank),
        size(group_size),
        scratch(landing),
        shared(shared_memory) {}

  const MPI_Comm communicator;
  const MpiMark mark;
  const int rank, size;
  MpiScratch& scratch;
  const SharedMemory* const shared;

  MpiBatch batch(int more_flags = 0) const { return MpiBatch(communicator, {mark.key, mark.flags | more_flags}); }

  // Memory for one operation, kept as long as messages may still use it: beyond the coroutine, if that fails.
  std::byte* allocate(std::int64_t bytes) {
    memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
    return memory_.back().get();
  }

  // co_await flow.all(batch): resumes when every message of the batch has ended.
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

  // Checks the awaited batch once; resumes the coroutine if the batch is complete or failed. True if it resumed.
  bool advance();

 private:
  std::coroutine_handle<> waiting_;
  MpiBatch* awaited_ = nullptr;
  std::exception_ptr error_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace tessera
