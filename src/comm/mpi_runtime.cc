#include "comm/mpi_runtime.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "comm/mpi_collectives.h"
#include "core/error.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
std::atomic<bool> running{false};
constexpr std::chrono::milliseconds kNap{5};

bool is_point_to_point(OpKind kind) {
  return kind == OpKind::kSend || kind == OpKind::kRecv;
}

// Messages of operations that were called differently never match: the watchdog then sees both sides wait and names
// them, instead of one taking the other's data. 10 bits of sequence, 13 of what was called; users' tags apart.
int tag_of(const HostOperation& op, std::uint64_t sequence) {
  constexpr int kPointToPoint = 1 << 23;
  if (is_point_to_point(op.kind)) return kPointToPoint | (op.tag & (kPointToPoint - 1));
  const int called = static_cast<int>(op.kind) << 9 | static_cast<int>(op.type) << 3 | static_cast<int>(op.reduce_op);
  return static_cast<int>(sequence % 1024) << 13 | (called & 0x1FFF);
}

// How the progress thread waits for messages: first it only lets others run, then it sleeps, longer the longer
// nothing comes, so that a rank that waits for a slow one leaves its core to the computation.
class Backoff {
 public:
  void reset() { since_ = Clock::now(); }
  void pause() {
    const auto idle = Clock::now() - since_;
    if (idle < std::chrono::milliseconds(2)) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(idle < std::chrono::milliseconds(100) ? std::chrono::microseconds(20)
                                                                        : std::chrono::microseconds(500));
    }
  }

 private:
  Clock::time_point since_ = Clock::now();
};

}  // namespace

MpiRuntime& MpiRuntime::instance() {
  static MpiRuntime runtime;
  return runtime;
}

bool MpiRuntime::is_running() {
  return running;
}

MpiRuntime::MpiRuntime() {
  int granted = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
  if (granted < MPI_THREAD_MULTIPLE) {
    throw Error("this MPI library does not grant MPI_THREAD_MULTIPLE; use Open MPI built with thread support");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  thread_ = std::thread([this] { progress(); });
  running = true;
}

MpiRuntime::~MpiRuntime() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  // Where an operation failed or was abandoned, the other ranks will not come to the end together.
  if (failed_.empty() && jobs_.empty()) MPI_Finalize();
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

std::string MpiRuntime::broadcast_text(const std::string& text) {
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
        // Collectives come in bursts, and callers that wait at once do the work themselves: being woken for each of
        // them would only take their core.
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
  {
    std::lock_guard lock(mutex_);
    ++num_drivers_;
  }
  Backoff backoff;
  while (!work.isCompleted()) {
    bool moved;
    {
      std::lock_guard lock(engine_mutex_);
      moved = step();
    }
    moved ? backoff.reset() : backoff.pause();
  }
  std::lock_guard lock(mutex_);
  --num_drivers_;
  if (asleep_ && busy_) wake_.notify_one();
}

bool MpiRuntime::step() {
  {
    std::lock_guard lock(mutex_);
    jobs_.splice(jobs_.end(), inbox_);
  }
  bool moved = false;
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const auto current = job++;
    if (current->task) {
      moved |= current->flow->advance();
    } else if (may_start(*current)) {
      start(*current);
      moved = true;
    }
    if (!current->task || !current->task->done()) continue;
    const auto error = current->task->error();
    const auto work = current->work;
    Jobs ended;
    Jobs& target = error ? failed_ : ended;
    target.splice(target.end(), jobs_, current);
    ended.clear();  // buffers are released before the caller goes on
    work->end(error);
  }
  busy_ = !jobs_.empty();
  return moved;
}

bool MpiRuntime::may_start(const Job& job) const {
  if (job.operation.ready && !job.operation.ready->query()) return false;
  // In order within a lane: nothing older of it is in the list. Messages: no older one on the same way still waits.
  for (const Job& other : jobs_) {
    if (&other == &job) return true;
    if (other.lane != job.lane) continue;
    if (is_point_to_point(job.operation.kind)) {
      if (!other.task && other.operation.kind == job.operation.kind && other.operation.peer == job.operation.peer)
        return false;
    } else if (!is_point_to_point(other.operation.kind)) {
      return false;
    }
  }
  return true;
}

void MpiRuntime::start(Job& job) {
  const std::uint64_t sequence = is_point_to_point(job.operation.kind) ? 0 : job.lane->sequence++;
  job.flow = std::make_unique<MpiFlow>(job.lane->communicator, tag_of(job.operation, sequence), job.lane->rank,
                                       job.lane->size, job.lane->scratch);
  job.task.emplace(carry_out(*job.flow, job.operation, job.lane->order));
  job.task->start();
}

}  // namespace tessera
