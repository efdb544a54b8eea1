#include "comm/mpi/runtime.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "comm/failure.h"
#include "core/error.h"
#include "core/host.h"
#include "core/quantity.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNap{5};
constexpr std::chrono::milliseconds kLook{100};  // at the clock, in a time limit

bool is_point_to_point(OpKind kind) {
  return kind == OpKind::kSend || kind == OpKind::kRecv;
}

MpiMark mark_of(const HostOperation& op, std::uint64_t sequence) {
  if (is_point_to_point(op.kind)) return {static_cast<std::uint64_t>(op.tag), MpiMark::kPointToPoint};
  std::uint64_t key = sequence;
  for (int part : {static_cast<int>(op.kind), static_cast<int>(op.type), static_cast<int>(op.reduce_op), op.peer}) {
    key = key * 1'000'003 + static_cast<std::uint64_t>(part);
  }
  return {key, 0};
}

// MPI's blocking calls have no time limit: this ends the process when one takes too long. Time in which the process
// stood still, as in a job that is suspended, does not count.
class TimeLimit {
 public:
  TimeLimit(std::chrono::milliseconds timeout, const char* what, ExitStatus status = ExitStatus::kRendezvous)
      : thread_([=](const std::stop_token& stop) {
          for (Clock::duration waited{}; waited < timeout;) {
            const auto start = Clock::now();
            if (!sleep_until(stop, start + kLook)) return;
            waited += std::min<Clock::duration>(Clock::now() - start, 2 * kLook);
          }
          report_failure(fmt::format("{} has waited for {}: not all ranks have reached it; see the other ranks' output",
                                     what, format_duration(timeout)),
                         static_cast<int>(status));
          _exit(static_cast<int>(status));
        }) {}

 private:
  std::jthread thread_;
};

// How to wait for messages: first by polling, yielding now and then (at every poll it would cost a 1 MB all-reduce 5
// %), then by sleeping, for longer the longer nothing arrives, so that a rank that waits for a slow one leaves its core
// to the computation.
class Backoff {
 public:
  void reset() { since_ = Clock::now(); }
  void pause() {
    const auto idle = Clock::now() - since_;
    if (idle < std::chrono::milliseconds(2)) {
      if (++num_looks_ % 32 == 0) sched_yield();
    } else {
      std::this_thread::sleep_for(idle < std::chrono::milliseconds(100) ? std::chrono::microseconds(20)
                                                                        : std::chrono::microseconds(500));
    }
  }

 private:
  Clock::time_point since_ = Clock::now();
  unsigned num_looks_ = 0;
};

}  // namespace

MpiRuntime& MpiRuntime::instance(std::chrono::milliseconds timeout) {
  static MpiRuntime runtime(timeout);
  return runtime;
}

MpiRuntime::MpiRuntime(std::chrono::milliseconds timeout) : process_id_(getpid()) {
  int granted = MPI_THREAD_SINGLE, is_initialized = 0;
  MPI_Initialized(&is_initialized);
  is_ours_ = is_initialized == 0;
  if (is_ours_) {
    const TimeLimit limit(timeout, "MPI_Init");
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
  } else {
    check_mpi(MPI_Query_thread(&granted), "MPI_Query_thread");
  }
  if (granted < MPI_THREAD_MULTIPLE) {
    throw Error(
        "MPI does not grant MPI_THREAD_MULTIPLE: use an Open MPI with thread support; a program that calls "
        "MPI_Init_thread itself must ask for it");
  }
  int* largest_tag = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &is_set);
  if (is_set != 0 && *largest_tag < 2 * MpiMark::kSecond) {
    throw Error(fmt::format("this MPI supports message tags only up to {}, but Tessera needs {}", *largest_tag,
                            2 * MpiMark::kSecond));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  thread_ = std::thread([this] { progress(); });
  std::at_quick_exit([] { instance().end(); });  // which skips destructors
}

MpiRuntime::~MpiRuntime() {
  end();
}

void MpiRuntime::end() {
  if (!thread_.joinable()) return;
  if (getpid() != process_id_) {
    thread_.detach();  // it runs in the parent
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  const bool at_peace = open_worlds_ == 0 && failed_.empty() && jobs_.empty() && inbox_.empty();
  if (!is_ours_ || !at_peace) return;
  const TimeLimit limit(finalize_timeout_, "MPI_Finalize", ExitStatus::kCollective);
  MPI_Finalize();
}

MPI_Comm MpiRuntime::make_communicator(const std::vector<int>& ranks, int tag) {
  MPI_Group world_group, group;
  MPI_Comm communicator = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world_group), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(world_group, static_cast<int>(ranks.size()), ranks.data(), &group), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &communicator), "MPI_Comm_create_group");
  check_mpi(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  MPI_Group_free(&group);
  MPI_Group_free(&world_group);
  return communicator;
}

std::string MpiRuntime::broadcast_text(const std::string& text, std::chrono::milliseconds timeout) {
  const TimeLimit limit(timeout, "MPI_Bcast");
  int length = static_cast<int>(text.size());
  check_mpi(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  std::string result = text;
  result.resize(static_cast<std::size_t>(length));
  check_mpi(MPI_Bcast(result.data(), length, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return result;
}

void MpiRuntime::submit(std::shared_ptr<MpiLane> lane, HostOperation operation, c10::intrusive_ptr<HostWork> work) {
  work->drive_while_waiting([this](HostWork& waited) { drive_until_ended(waited); });
  std::lock_guard lock(mutex_);
  inbox_.push_back({std::move(lane), std::move(operation), std::move(work), nullptr, std::nullopt});
  if (asleep_) wake_.notify_one();
}

void MpiRuntime::progress() {
  Backoff backoff;
  auto last_work = Clock::now();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const auto has_work = [&] { return stopping_ || (num_drivers_ == 0 && (busy_ || !inbox_.empty())); };
      if (!has_work() && Clock::now() - last_work < kNap) {
        // Collectives come in bursts, and callers that wait at once do the work themselves: waking up for each would
        // only take their core.
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      }
      if (!has_work()) {
        asleep_ = true;
        wake_.wait(lock, has_work);
        asleep_ = false;
        backoff.reset();
      }
      if (stopping_) return;
    }
    last_work = Clock::now();
    bool moved;
    {
      std::lock_guard lock(engine_mutex_);
      moved = step();
    }
    moved ? backoff.reset() : backoff.pause();
  }
}

void MpiRuntime::drive_until_ended(HostWork& work) {
  std::unique_lock count_lock(mutex_);
  ++num_drivers_;
  count_lock.unlock();
  Backoff backoff;
  while (!work.isCompleted()) {
    bool moved;
    {
      std::lock_guard lock(engine_mutex_);
      moved = step();
    }
    moved ? backoff.reset() : backoff.pause();
  }
  count_lock.lock();
  --num_drivers_;
  if (asleep_ && num_drivers_ == 0 && (busy_ || !inbox_.empty())) wake_.notify_one();
}

bool MpiRuntime::step() {
  take_new_jobs();
  bool moved = false;
  for (auto next = jobs_.begin(); next != jobs_.end();) {
    const auto job = next++;
    std::exception_ptr error;
    try {
      if (job->task) {
        moved |= job->channel->advance();
      } else if (may_start(*job)) {
        start(*job);
        moved = true;
      }
      if (!job->task || !job->task->done()) continue;
      error = job->task->error();
    } catch (...) {  // a CUDA error while staging, or out of memory
      error = std::current_exception();
    }
    end(job, error);
  }
  busy_ = !jobs_.empty();
  return moved;
}

// Collectives queue in their lane: only the first is active, however many wait.
void MpiRuntime::take_new_jobs() {
  MpiJobs fresh;
  {
    std::lock_guard lock(mutex_);
    fresh.swap(inbox_);
  }
  while (!fresh.empty()) {
    MpiLane& lane = *fresh.front().lane;
    const bool queues = !is_point_to_point(fresh.front().operation.kind);
    MpiJobs& target = queues && lane.occupied ? lane.waiting : jobs_;
    if (queues) lane.occupied = true;
    target.splice(target.end(), fresh, fresh.begin());
  }
}

bool MpiRuntime::may_start(const MpiJob& job) const {
  if (job.operation.ready && !job.operation.ready->query()) return false;
  if (!is_point_to_point(job.operation.kind)) return true;
  // Messages on one route keep their order: start only if no older one still waits for its data.
  for (const MpiJob& other : jobs_) {
    if (&other == &job) break;
    const bool same_way = other.lane == job.lane && other.operation.kind == job.operation.kind &&
                          other.operation.peer == job.operation.peer;
    if (same_way && !other.task) return false;
  }
  return true;
}

void MpiRuntime::end(MpiJobs::iterator job, const std::exception_ptr& error) {
  const std::shared_ptr<MpiLane> lane = job->lane;
  const c10::intrusive_ptr<HostWork> work = job->work;
  if (!is_point_to_point(job->operation.kind)) {
    lane->occupied = !lane->waiting.empty();
    if (lane->occupied) jobs_.splice(jobs_.end(), lane->waiting, lane->waiting.begin());
  }
  MpiJobs ended;
  MpiJobs& target = error ? failed_ : ended;
  target.splice(target.end(), jobs_, job);
  if (error) lane->failed = error;
  ended.clear();  // buffers are released before the caller continues
  work->end(error);
}

void MpiRuntime::start(MpiJob& job) {
  MpiLane& lane = *job.lane;
  if (lane.failed) std::rethrow_exception(lane.failed);
  const std::uint64_t sequence = is_point_to_point(job.operation.kind) ? 0 : lane.sequence++;
  job.channel = std::make_unique<MpiChannel>(lane, mark_of(job.operation, sequence));
  job.task.emplace(carry_out(*job.channel, job.operation));
  job.task->start();
}

}  // namespace tessera
