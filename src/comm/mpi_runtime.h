// MPI in this process: initialised once, worked by one progress thread.
//
// Operations are handed over by any thread and carried out by the progress thread, in order within a lane (a group),
// side by side across lanes. Send and receive do not wait in their lane: two ranks may send to each other first.
// Only communicators are made on the caller's thread; for that MPI must grant MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <deque>
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
  std::uint64_t sequence = 0;  // of the next collective; written by the progress thread
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
  void progress();              // the thread
  void take_new_jobs(bool idle);
  bool may_start(const Job& job) const;
  void start(Job& job);

  int rank_ = 0, size_ = 1;
  std::mutex mutex_;
  std::condition_variable wake_;
  Jobs inbox_;                  // guarded by mutex_
  bool stopping_ = false;       // guarded by mutex_
  Jobs jobs_;                   // the rest belongs to the progress thread
  Jobs failed_;                 // kept: MPI may still write into their buffers
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
