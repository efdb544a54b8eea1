// How ranks ended, which of them failed first, and how to report it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  std::string note{};             // what the runner adds: out of memory, could not be started
  std::string log_file{};         // empty: none

  bool failed() const { return exit_status != 0; }
  static void visit_fields(auto& end, const auto& visit) {
    visit("rank", end.rank);
    visit("host", end.host);
    visit("exit_status", end.exit_status);
    visit("signal", end.signal);
    visit("time_ms", end.time_ms);
    visit("was_told_to_stop", end.was_told_to_stop);
    visit("says_consequence", end.says_consequence);
    visit("says_finding", end.says_finding);
    visit("message", end.message);
    visit("note", end.note);
    visit("log_file", end.log_file);
  }
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

// What of mpirun's last output explains why ranks ended: not that it passes on our signals, nor that a process has
// ended, which our report says better, nor the lines that it draws around that. Empty: nothing.
std::string explanation_in(std::string_view output);

// How the ranks of one node ended.
struct SupervisionResult {
  std::vector<RankEnd> ends{};  // by local rank; a rank that never started counts as told to stop
  int signal = 0;               // SIGTERM, SIGINT or SIGHUP to the launcher, if that ended the ranks
  bool interrupted = false;     // such a signal came, perhaps only after a rank had failed: no restart
  std::string trouble{};        // not the fault of a rank: the ranks could not be started, or mpirun died
  int trouble_status = 0;
  pid_t killed_mpirun = 0;  // it had no time to clean up
};

// The outcome of an attempt: on one node, and over all nodes.
struct Verdict {
  int status = 0;                  // the launcher's exit status, if this is the last attempt
  std::optional<RankEnd> failure;  // the rank to name
  std::string trouble;             // what went wrong apart from the ranks
  int signal = 0;                  // the launcher was told to end
  bool interrupted = false;        // by such a signal, perhaps only after the failure
  bool restart = false;            // decided by node 0, once for all

  bool is_well() const { return status == 0; }
  static void visit_fields(auto& verdict, const auto& visit) {
    visit("status", verdict.status);
    visit("failure", verdict.failure);
    visit("trouble", verdict.trouble);
    visit("signal", verdict.signal);
    visit("interrupted", verdict.interrupted);
    visit("restart", verdict.restart);
  }
};

Verdict judge(const SupervisionResult& result);

// Of all nodes' verdicts, the one that explains the others: a rank that failed by itself, else trouble, else a signal,
// else whatever failed first.
Verdict merge(const std::vector<Verdict>& verdicts);

}  // namespace tessera
