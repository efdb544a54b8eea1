// MPI in this process: initialised once, worked by one progress thread.
//
// Operations are handed over by any thread and carried out in order within a lane (a group), side by side across lanes.
// Send and receive do not wait in their lane: two ranks may send to each other first. The progress thread does the
// work while callers compute; a caller that waits does it itself meanwhile, which saves two changes of thread (half the
// time of a small collective). Communicators are made on the caller's thread, beside the work under way: for that MPI
// must grant MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/host_backend.h"
#include "comm/mpi_flow.h"
#include "comm/mpi_task.h"
#include "comm/ordered_reduce.h"

namespace tessera {

// A group's communicator and the order of its sums. Owned by the group's backend; outlives its operations.
struct MpiLane {
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0, size = 1;
  ReduceOrder order;
  MpiScratch scratch;
  std::uint64_t sequence = 0;  // of the next collective; written by whoever carries operations out
};

class MpiRuntime {
 public:
  // MPI_Init_thread on first use, MPI_Finalize when the process ends normally.
  static MpiRuntime& instance();
  static bool is_running();  // without starting it

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Collective over `ranks` of the world. `tag` tells two such calls apart that overlap.
  MPI_Comm make_communicator(const std::vector<int>& ranks, int tag);
  // From rank 0 to all: the address where the ranks meet. On the caller's thread, before any operation.
  std::string broadcast_text(const std::string& text);

  void submit(std::shared_ptr<MpiLane> lane, HostOperation operation, c10::intrusive_ptr<HostWork> work);

  ~MpiRuntime();

 private:
  struct Job {
    std::shared_ptr<MpiLane> lane;
    HostOperation operation;
    c10::intrusive_ptr<HostWork> work;
    std::unique_ptr<MpiFlow> flow;  // once started
    std::optional<MpiTask> task;
  };
  using Jobs = std::list<Job>;

  MpiRuntime();
  void progress();                         // the thread
  void drive_until_ended(HostWork& work);  // a waiting caller
  // One pass over the operations; true when one of them went on. Called with engine_mutex_ held.
  bool step();
  bool may_start(const Job& job) const;
  void start(Job& job);

  int rank_ = 0, size_ = 1;
  std::mutex mutex_;
  std::condition_variable wake_;
  Jobs inbox_;                     // guarded by mutex_
  bool stopping_ = false;          // guarded by mutex_
  bool asleep_ = false;            // the progress thread waits for wake_; guarded by mutex_
  int num_drivers_ = 0;            // callers that do the work; guarded by mutex_
  std::mutex engine_mutex_;        // whoever carries operations out
  Jobs jobs_;                      // guarded by engine_mutex_
  Jobs failed_;                    // likewise; kept, since MPI may still write into their buffers
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
