// Starts, watches, signals and ends the ranks of this node during one attempt.
//
// Everything happens in run(), in one thread: it waits for runners, signals, mpirun and the clock, and returns when
// every process that it started is gone. When a rank fails, it ends the others: SIGTERM, then SIGKILL one second later.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "launch/exit_report.h"
#include "launch/run_folder.h"
#include "launch/starter.h"
#include "launch/wire.h"

namespace tessera {

class RankSupervisor {
 public:
  struct Options {
    std::chrono::milliseconds start_timeout{}, stop_timeout{};
    std::string secret{};  // TESSERA_SECRET of the ranks: sent to the runners, so that no file and no argument holds it
    // If given, called ten times a second: true ends the ranks (another node has failed).
    std::function<bool()> must_stop{};
    // Called once, as soon as something has gone wrong here.
    std::function<void()> on_failure{};
  };

  // The order has been written. `inbox` holds the launcher's signals.
  RankSupervisor(const RankOrder& order, const StartRequest& request, SignalInbox& inbox, Options options);
  ~RankSupervisor();

  SupervisionResult run();

 private:
  using Clock = std::chrono::steady_clock;

  // A connected runner.
  struct Member {
    Line line;
    int local_rank = -1;  // -1: has not said hello
    pid_t runner_pid = -1, rank_pid = -1;
    bool is_open = true;
  };

  void wait_for_news();
  void welcome_runners();
  void hear(Member& member);
  void take(Member& member, const Json& packet);
  void take_end(const Member& member, RankEnd end, std::int64_t starter_died_ms);
  void hear_mpirun();
  void hear_signals();
  void take_signal(int signal);
  void reap();
  void mind_the_clock();
  void note_failure(bool of_another);
  void note_trouble(const std::string& trouble, int status);
  void note_exit(std::size_t index, int wait_status);
  void stop(std::chrono::milliseconds grace);
  void kill_everything();
  bool all_gone() const;
  bool any_runner_left() const;
  bool any_rank_left() const;
  std::vector<int> missing_ranks() const;
  RankEnd end_of(int local_rank) const;
  void blame_mpirun();
  void explain_by_mpirun();
  void note_late_signals();

  // supervised_processes.cc
  void notice_lost_runners();
  std::vector<pid_t> runners_of_mpirun() const;
  void continue_stopped();
  bool any_has_failed() const;
  std::string starter_state() const;  // ": mpirun (process 7) is stopped", or empty

  const RankOrder& order_;
  SignalInbox& inbox_;
  Options options_;
  Fd listener_;
  Started started_;
  bool by_mpirun_;
  std::string runner_program_;
  std::vector<Member> members_;               // runners that have connected, in that order
  std::vector<bool> has_begun_;               // by local rank
  std::vector<std::optional<RankEnd>> ends_;  // by local rank; nothing: it has not ended
  SupervisionResult result_;
  std::string mpirun_words_;  // its output after a failure was known
  bool failure_known_ = false, stopping_ = false, killed_before_ = false;
  std::string mpirun_exit_;  // not by us: "mpirun was killed by SIGKILL"
  int mpirun_exit_status_ = static_cast<int>(ExitStatus::kFailure);
  bool mpirun_died_first_ = false;  // before a rank
  Clock::time_point look_for_stopped_at_{};
  std::set<pid_t> stopped_;     // at that look
  std::set<pid_t> runners_;     // of mpirun, as far as seen before all had said hello
  bool lost_a_runner_ = false;  // at the last look
  int passed_on_ = 0;           // the last signal that was passed on to the ranks
  std::optional<Clock::time_point> start_deadline_, stop_at_, kill_at_, signal_deadline_;
};

}  // namespace tessera
