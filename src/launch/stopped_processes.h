// Continues processes that are stopped (SIGSTOP) alone: a suspended job stops the launcher too, so nobody meant it.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace tessera {

struct NamedProcess {
  pid_t pid = 0;
  std::string name;
};

class StoppedProcesses {
 public:
  // Those that are stopped now and were at the last call; says so. The first name of a process counts.
  void continue_them(const std::vector<NamedProcess>& processes);

 private:
  std::set<pid_t> stopped_;  // at the last call
};

}  // namespace tessera
