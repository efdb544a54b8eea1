#include "launch/stopped_processes.h"

#include <csignal>
#include <utility>

#include "core/process_state.h"
#include "launch/say.h"

namespace tessera {

void StoppedProcesses::continue_them(const std::vector<NamedProcess>& processes) {
  const std::set<pid_t> before = std::exchange(stopped_, {});
  for (const auto& [pid, name] : processes) {
    if (process_state(pid) != 'T' || !stopped_.insert(pid).second || !before.contains(pid)) continue;
    say("{} (process {}) is stopped: continuing it", name, pid);
    kill(pid, SIGCONT);
  }
}

}  // namespace tessera
