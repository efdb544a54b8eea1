// How the supervisor watches processes that cannot report themselves: runners before their hello, and whoever is
// stopped.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "launch/output.h"
#include "launch/rank_supervisor.h"

namespace tessera {

std::vector<pid_t> RankSupervisor::runners_of_mpirun() const {
  std::vector<pid_t> runners = children_of(started_.pids.front());
  std::erase_if(runners, [&](pid_t child) { return process_name(child) != runner_program_; });
  return runners;
}

// mpirun, told not to end ranks by itself, does not even end when all its processes are gone, and a runner that has not
// said hello has no line that could break.
void RankSupervisor::notice_lost_runners() {
  const auto is_known = [&](pid_t pid) {
    return std::ranges::any_of(members_, [&](const Member& member) { return member.runner_pid == pid; });
  };
  for (const pid_t runner : runners_of_mpirun()) runners_.insert(runner);
  const bool is_lost =
      std::ranges::any_of(runners_, [&](pid_t runner) { return has_ended(runner) && !is_known(runner); });
  // Its hello may be on its way: it counts as lost at the second look.
  if (!std::exchange(lost_a_runner_, is_lost) || !is_lost || stopping_) return;
  note_trouble(fmt::format("rank {} on {} did not start: its minder process has ended", format_ranges(missing_ranks()),
                           host_name()),
               static_cast<int>(ExitStatus::kFailure));
}

// Continues processes that are stopped (SIGSTOP) alone, at this look and the last: a suspended job stops the launcher
// too, so nobody meant it. Only those that nobody waits for with a time limit, so that the run would stand still for
// ever: a runner cannot start its rank or report its end, ranks cannot leave MPI without mpirun, and a rank that is
// stopped after the others have ended has said goodbye to them.
void RankSupervisor::continue_stopped() {
  const std::set<pid_t> before = std::exchange(stopped_, {});
  // The first name of a process counts.
  const auto look_at = [&](pid_t pid, const std::string& name) {
    if (process_state(pid) != 'T' || !stopped_.insert(pid).second || !before.contains(pid)) return;
    say("{} (process {}) is stopped: continuing it", name, pid);
    kill(pid, SIGCONT);
  };
  const auto name_of_runner = [&](int local_rank) {
    return fmt::format("the minder of rank {} on {}", order_.rank(local_rank), host_name());
  };
  const auto num_ended = std::ranges::count_if(ends_, &std::optional<RankEnd>::has_value);
  const bool is_last = num_ended > 0 && num_ended + 1 == order_.num_local_ranks && !any_has_failed();
  for (const Member& member : members_) {
    if (!member.is_open || member.local_rank < 0) continue;
    look_at(member.runner_pid, name_of_runner(member.local_rank));
    if (member.rank_pid <= 0 || !is_last) continue;
    look_at(member.rank_pid,
            fmt::format("rank {} on {}, which alone has not ended,", order_.rank(member.local_rank), host_name()));
  }
  for (std::size_t i = 0; i < started_.pids.size(); ++i) {
    if (started_.pids[i] <= 0) continue;
    look_at(started_.pids[i], by_mpirun_ ? "mpirun" : name_of_runner(static_cast<int>(i)));
    if (!by_mpirun_) continue;
    for (const pid_t child : runners_of_mpirun()) look_at(child, "a minder");
  }
}

bool RankSupervisor::any_has_failed() const {
  return std::ranges::any_of(ends_, [](const std::optional<RankEnd>& end) { return end && end->failed(); });
}

std::string RankSupervisor::starter_state() const {
  for (const pid_t pid : started_.pids) {
    if (pid > 0 && process_state(pid) == 'T') {
      return fmt::format(": {} (process {}) is stopped", by_mpirun_ ? "mpirun" : "its minder", pid);
    }
  }
  return {};
}

}  // namespace tessera
