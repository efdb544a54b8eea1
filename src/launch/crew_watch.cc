// How the crew watches processes that cannot report themselves: minders before their hello, and whoever is stopped.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/process_state.h"
#include "core/text.h"
#include "launch/crew.h"

namespace tessera {

std::vector<pid_t> Crew::minders_of_mpirun() const {
  std::vector<pid_t> minders = children_of(started_.pids.front());
  std::erase_if(minders, [&](pid_t child) { return process_name(child) != minder_program_; });
  return minders;
}

// mpirun, told not to end ranks by itself, does not even end when all its processes are gone, and a minder that has not
// said hello has no line that could break.
void Crew::notice_lost_minders() {
  const auto is_known = [&](pid_t pid) {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const Member& member) { return member.minder_pid == pid; });
  };
  for (const pid_t minder : minders_of_mpirun()) minders_.insert(minder);
  const bool is_lost = std::any_of(minders_.begin(), minders_.end(),
                                   [&](pid_t minder) { return has_ended(minder) && !is_known(minder); });
  // Its hello may be on its way: it counts as lost at the second look.
  if (!std::exchange(lost_a_minder_, is_lost) || !is_lost || stopping_) return;
  note_trouble(fmt::format("rank {} on {} did not start: its minder process has ended", format_ranges(missing_ranks()),
                           host_name()),
               static_cast<int>(ExitStatus::kFailure));
}

// Those that nobody waits for with a time limit, so that the run would stand still for ever if one is stopped: a minder
// cannot start its rank or report its end, ranks cannot leave MPI without mpirun, and a rank that is stopped after the
// others have ended has said goodbye to them.
std::vector<NamedProcess> Crew::processes_nobody_waits_for() const {
  const auto minder_of = [&](int local_rank) {
    return fmt::format("the minder of rank {} on {}", order_.rank(local_rank), host_name());
  };
  std::vector<NamedProcess> processes;
  for (const Member& member : members_) {
    if (!member.is_open || member.local_rank < 0) continue;
    processes.push_back({member.minder_pid, minder_of(member.local_rank)});
    if (member.rank_pid <= 0 || !all_but_one_have_ended_well()) continue;
    processes.push_back({member.rank_pid, fmt::format("rank {} on {}, which alone has not ended,",
                                                      order_.rank(member.local_rank), host_name())});
  }
  for (std::size_t i = 0; i < started_.pids.size(); ++i) {
    if (started_.pids[i] <= 0) continue;
    processes.push_back({started_.pids[i], by_mpirun_ ? "mpirun" : minder_of(static_cast<int>(i))});
    if (!by_mpirun_) continue;
    for (const pid_t child : minders_of_mpirun()) processes.push_back({child, "a minder"});
  }
  return processes;
}

bool Crew::have_all_ended_well() const {
  return !any_rank_left() && !any_has_failed();
}

bool Crew::all_but_one_have_ended_well() const {
  const auto num_ended = std::count(has_ended_.begin(), has_ended_.end(), true);
  return num_ended > 0 && num_ended + 1 == order_.num_local_ranks && !any_has_failed();
}

bool Crew::any_has_failed() const {
  return std::any_of(ends_.begin(), ends_.end(), [](const RankEnd& end) { return end.failed(); });
}

std::string Crew::starter_state() const {
  for (const pid_t pid : started_.pids) {
    if (pid > 0 && process_state(pid) == 'T') {
      return fmt::format(": {} (process {}) is stopped", by_mpirun_ ? "mpirun" : "its minder", pid);
    }
  }
  return {};
}

}  // namespace tessera
