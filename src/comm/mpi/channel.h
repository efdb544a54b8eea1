// The messages of one operation: what it sends and receives, the coroutine that waits for them, and the memory that
// ranks of one host share.
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

#include "comm/host_backend.h"
#include "comm/ordered_reduce.h"

namespace tessera {

// Memory that all ranks of a group on one host can read and write: one segment per rank.
class SharedMemory {
 public:
  // Collective over the communicator. Null, on every rank, if the ranks are on several hosts or the host has no such
  // memory left (a container's /dev/shm is often small): messages then do the same, only slower.
  static std::unique_ptr<SharedMemory> create(MPI_Comm communicator);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* segment(int rank) const { return base_ + rank * segment_bytes(); }
  // 256 KiB per slot with 4 ranks, in the reductions' two turns of one slot per rank: fits in the cache beside the
  // data.
  static constexpr std::int64_t segment_bytes() { return std::int64_t{2} << 20; }

 private:
  SharedMemory(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_;
  std::size_t bytes_;
};

// A collective in progress, written as a coroutine: it runs until it must wait for messages, and is resumed when they
// have arrived. So the collectives of several groups advance side by side on one thread, and each reads top-down like
// blocking code.
//
//   MpiTask exchange(MpiChannel& channel, ...) {
//     MpiBatch batch = channel.batch();
//     batch.receive(...);
//     batch.send(...);
//     co_await channel.all(batch);
//   }
class MpiTask {
 public:
  struct promise_type {
    std::coroutine_handle<> awaiting = std::noop_coroutine();  // the task that waits for this one, if any
    std::exception_ptr error;

    MpiTask get_return_object() { return MpiTask(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct ResumeAwaiting {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
          return ended.promise().awaiting;
        }
        void await_resume() noexcept {}
      };
      return ResumeAwaiting{};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit MpiTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  MpiTask(MpiTask&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  MpiTask& operator=(MpiTask&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~MpiTask() {
    if (handle_) handle_.destroy();
  }

  // For the progress thread: starts the task.
  void start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  std::exception_ptr error() const { return handle_.promise().error; }

  // For another task: co_await this one as a step.
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  void await_resume() const {
    if (error()) std::rethrow_exception(error());
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// Throws Error(kCollective) with MPI's own signals unless `code` is MPI_SUCCESS.
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
  void send_signal(std::int64_t bytes, int to);
  void receive_signal(std::int64_t bytes, int from);
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

// A group's communicator, the order of its sums, and memory for one operation at a time.
struct MpiGroup {
  // Collective: also makes the group's shared memory if the group is on one node (as --ranks_per_node defines nodes).
  MpiGroup(MPI_Comm comm, int group_rank, int group_size, ReduceOrder reduce_order)
      : communicator(comm),
        rank(group_rank),
        size(group_size),
        order(std::move(reduce_order)),
        shared(order.node_sizes.size() == 1 ? SharedMemory::create(comm) : nullptr) {}

  const MPI_Comm communicator;
  const int rank, size;
  const ReduceOrder order;
  const std::unique_ptr<SharedMemory> shared;  // null if the group has none
  MpiScratch scratch;
};

// What a coroutine hands to the progress thread: itself, and the batch that it waits for.
class MpiChannel {
 public:
  MpiChannel(MpiGroup& its_group, MpiMark message_mark)
      : group(its_group), rank(group.rank), size(group.size), mark(message_mark) {}

  MpiGroup& group;  // outlives the channel
  const int rank, size;
  const MpiMark mark;

  MpiBatch batch(int more_flags = 0) const { return MpiBatch(group.communicator, {mark.key, mark.flags | more_flags}); }

  // Memory for one operation, kept as long as messages may still use it: beyond the coroutine, if that fails.
  std::byte* allocate(std::int64_t bytes) {
    memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
    return memory_.back().get();
  }

  // co_await channel.all(batch): resumes when every message of the batch has ended.
  auto all(MpiBatch& batch) {
    struct Awaiter {
      MpiChannel& channel;
      MpiBatch& batch;
      bool await_ready() { return batch.test(); }
      void await_suspend(std::coroutine_handle<> handle) {
        channel.waiting_ = handle;
        channel.awaited_ = &batch;
      }
      void await_resume() {
        if (channel.error_) std::rethrow_exception(std::exchange(channel.error_, nullptr));
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

// The collectives, and send and receive (collectives.cc). Both references must outlive the task.
MpiTask carry_out(MpiChannel& channel, const HostOperation& operation);

}  // namespace tessera
