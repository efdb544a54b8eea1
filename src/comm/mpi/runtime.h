// MPI in this process: initialised once, driven by one progress thread.
//
// Any thread may submit operations. They run in order within a lane (a group), and side by side across lanes. Send and
// receive do not wait in their lane: two ranks may send to each other first. The progress thread does the work while
// callers compute; a caller that waits does it itself, which saves two thread switches (half the time of a small
// collective). Communicators are made on the caller's thread while operations run: for that MPI must grant
// MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/host_backend.h"
#include "comm/mpi/channel.h"

namespace tessera {

struct MpiLane;

// An operation in progress.
struct MpiJob {
  std::shared_ptr<MpiLane> lane;
  HostOperation operation;
  c10::intrusive_ptr<HostWork> work;
  std::unique_ptr<MpiChannel> channel;  // once started
  std::optional<MpiTask> task;
};
using MpiJobs = std::list<MpiJob>;

// A group and its queue. Owned by the group's backend; outlives its operations. Non-const members belong to the thread
// that carries out operations.
struct MpiLane : MpiGroup {
  using MpiGroup::MpiGroup;

  std::uint64_t sequence = 0;  // of the next collective
  bool occupied = false;       // a collective of this lane is among the runtime's jobs
  MpiJobs waiting;             // the collectives queued behind it
  std::exception_ptr failed;   // messages may still land in its buffers: nothing more starts here
};

class MpiRuntime {
 public:
  // mpi_support.h says what each of these does.
  static MpiRuntime& instance(std::chrono::milliseconds timeout = std::chrono::minutes(10));

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Collective over `ranks` of the world. `tag` tells overlapping calls apart.
  MPI_Comm make_communicator(const std::vector<int>& ranks, int tag);
  std::string broadcast_text(const std::string& text, std::chrono::milliseconds timeout);

  void submit(std::shared_ptr<MpiLane> lane, HostOperation operation, c10::intrusive_ptr<HostWork> work);

  void open_world(std::chrono::milliseconds finalize_timeout) {
    finalize_timeout_ = finalize_timeout;
    ++open_worlds_;
  }
  void close_world() { --open_worlds_; }
  void end();

  ~MpiRuntime();

 private:
  explicit MpiRuntime(std::chrono::milliseconds timeout);
  void progress();                         // the thread
  void drive_until_ended(HostWork& work);  // a waiting caller
  // One pass over the operations; true if one of them advanced. Called with engine_mutex_ held.
  bool step();
  void take_new_jobs();
  bool may_start(const MpiJob& job) const;
  void start(MpiJob& job);
  void end(MpiJobs::iterator job, const std::exception_ptr& error);

  int rank_ = 0, size_ = 1;
  int process_id_ = 0;   // a forked child must not end its parent's MPI
  bool is_ours_ = true;  // we called MPI_Init
  std::atomic<int> open_worlds_{0};
  std::chrono::milliseconds finalize_timeout_{600'000};
  std::mutex mutex_;
  std::condition_variable wake_;
  MpiJobs inbox_;                  // guarded by mutex_
  bool stopping_ = false;          // guarded by mutex_
  bool asleep_ = false;            // the progress thread waits for wake_; guarded by mutex_
  int num_drivers_ = 0;            // callers that do the work; guarded by mutex_
  std::mutex engine_mutex_;        // held while carrying out operations
  MpiJobs jobs_;                   // one collective per lane, and all messages; guarded by engine_mutex_
  MpiJobs failed_;                 // likewise; kept, since MPI may still write into their buffers
  std::atomic<bool> busy_{false};  // jobs_ is not empty
  std::thread thread_;
};

class MpiBackend : public HostBackend {
 public:
  MpiBackend(int rank, int size, std::shared_ptr<MpiLane> lane) : HostBackend(rank, size), lane_(std::move(lane)) {}
  const std::string getBackendName() const override { return "mpi"; }

 protected:
  void submit(HostOperation operation, c10::intrusive_ptr<HostWork> work) override {
    MpiRuntime::instance().submit(lane_, std::move(operation), std::move(work));
  }

 private:
  std::shared_ptr<MpiLane> lane_;
};

}  // namespace tessera
