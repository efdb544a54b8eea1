// How ranks ended, which of them failed first, and how to report it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

struct RankEnd {
  int rank = 0;
  std::string host{};
  int exit_status = 0;            // as a shell reports it: 128 + signal if it was killed
  int signal = 0;                 // 0: it exited by itself
  std::int64_t time_ms = 0;       // since the epoch: when it failed, if it reported that, else when it ended
  bool was_told_to_stop = false;  // before it ended: by the launcher, or by mpirun
  bool says_consequence = false;  // it reported, or the launcher knows, that another end or a signal came first
  bool says_finding = false;      // its message is about the run, not about itself
  std::string message{};          // its own last words, from its failure file
  std::string note{};             // what the minder adds: out of memory, could not be started
  std::string log_file{};         // empty: none

  bool failed() const { return exit_status != 0; }
};

// Adds a rank's own last words, from its failure file. If it was told to stop, and says that SIGTERM stopped it, it is
// a consequence.
void add_last_words(RankEnd& end, const std::string& failure_file);

// The rank to name: the earliest of those that failed by themselves, else the earliest of all that failed, else
// nullptr. A rank that was told to stop failed by itself only if it says so, or if it crashed.
const RankEnd* first_failure(const std::vector<RankEnd>& ends);
bool is_consequence(const RankEnd& end);

std::string signal_name(int signal);  // "SIGKILL"; "signal 40" if it has no name
// "killed by SIGKILL; the kernel's ...", "exit status 7", or the rank's own message and its status.
std::string cause_of(const RankEnd& end);
// "rank 2 on host node3 failed: killed by SIGSEGV"
std::string describe(const RankEnd& end);

// The last lines of a file from byte `start` on, at most `num_lines` and 8 KiB; none if it cannot be read.
std::vector<std::string> last_lines(const std::string& path, std::int64_t start, int num_lines);

Json to_json(const RankEnd& end);
RankEnd rank_end_from_json(const Json& json);

}  // namespace tessera
