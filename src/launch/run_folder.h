// A launcher's private folder: its socket, the ranks' orders and last words. Removed when the launcher exits; if it was
// killed, by a runner, or by the next launcher (remove_leftovers), which sees by a lock that nobody uses it any more.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/file.h"

namespace tessera {

class RunFolder {
 public:
  // In TMPDIR, else in /tmp. Throws Error.
  explicit RunFolder(const Environment& environment);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

  // Whether it is the folder of a launcher on this host that is gone.
  static bool is_abandoned(const std::filesystem::path& folder);
  static constexpr const char* kPrefix = "tessera-launch-";

 private:
  std::string path_;
  Fd lock_;  // the kernel frees it with this process, however that ends
};

// The order that a launcher gives to the runners of its node: what to run, as which ranks, in what environment.
//
// It is written as order.msgpack into the launcher's private run folder, where the runners read it; the folder also
// holds the launcher's socket and the ranks' failure files.
struct RankOrder {
  std::string folder;                // the run folder
  std::vector<std::string> command;  // the first word is a path that can be executed
  int node_rank = 0, num_nodes = 1;
  int num_local_ranks = 1;  // the same on every node
  std::string master_addr;
  int master_port = 0;
  std::string run_id;
  int restart_count = 0, max_restarts = 0;
  std::map<std::string, std::string> environment;  // for every rank, in addition to what rank_environment() sets
  std::vector<std::vector<int>> cpus;              // by local rank; empty: not pinned
  std::string log_dir;                             // empty: no log files
  bool tee = false;

  int world_size() const { return num_nodes * num_local_ranks; }
  int rank(int local_rank) const { return node_rank * num_local_ranks + local_rank; }

  static void visit_fields(auto& order, const auto& visit) {
    visit("command", order.command);
    visit("node_rank", order.node_rank);
    visit("num_nodes", order.num_nodes);
    visit("num_local_ranks", order.num_local_ranks);
    visit("master_addr", order.master_addr);
    visit("master_port", order.master_port);
    visit("run_id", order.run_id);
    visit("restart_count", order.restart_count);
    visit("max_restarts", order.max_restarts);
    visit("environment", order.environment);
    visit("cpus", order.cpus);
    visit("log_dir", order.log_dir);
    visit("tee", order.tee);
  }
};

// What is set for one rank: torchrun's variables and ours.
std::map<std::string, std::string> rank_environment(const RankOrder& order, int local_rank);

std::string socket_path(const std::string& folder);
std::string failure_path(const RankOrder& order, int local_rank);
std::string log_path(const RankOrder& order, int local_rank);  // empty without log_dir

void write_order(const RankOrder& order);
RankOrder read_order(const std::string& folder);

// What killed runs left on this host, removed when the next one starts.
//
//   TMPDIR/tessera-launch-*              a launcher's folder
//   TMPDIR/ompi.HOST.USER/pid.N          the session of an mpirun
//   /dev/shm/vader_segment.HOST.USER.*   memory that MPI's ranks share
//   /dev/shm/tessera-N-*                 the same of our own, for the moment between its making and its mapping
//
// Only this user's, and only if nobody uses it: the launcher's lock is free, there is no process N, no process has the
// memory mapped.
//
// Younger sessions and memory than a minute stay: a run that is starting may not have mapped what it has just made.
// `temporary` is TMPDIR. Never throws: a run does not depend on it.
void remove_leftovers(const std::filesystem::path& temporary) noexcept;
// What our own mpirun left when it was killed.
void remove_session(pid_t mpirun, const std::filesystem::path& temporary) noexcept;

}  // namespace tessera
