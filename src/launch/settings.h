// The settings of `tessera launch`, and the plan that follows from them on this host.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"
#include "launch/host_resources.h"

namespace tessera {

// What a user gives and the launcher follows as it is.
struct LaunchOptions {
  int max_restarts = 0;
  bool tee = false;
  std::string log_dir;
  std::chrono::milliseconds start_timeout{}, stop_timeout{}, node_timeout{};
};

// torchrun's flags under their own names, and a few of ours.
struct LaunchSettings : LaunchOptions {
  std::string nnodes, nproc_per_node, rdzv_backend, rdzv_id, rdzv_endpoint, master_addr, starter, pin;
  int node_rank = -1, master_port = 0;
  bool standalone = false, use_env = false;
  // torchrun's own: some change nothing here, others ask for something that is done differently here.
  std::string role, monitor_interval, start_method, local_addr, redirects, rdzv_conf, local_ranks_filter;
  bool no_python = false, module = false;
  std::vector<std::string> command;  // PROGRAM or SUBCOMMAND and what follows it
};

void declare(Schema& schema, LaunchSettings& settings);

enum class Starter { kFork, kMpirun };

// Everything is decided; run_launcher() carries it out.
struct LaunchPlan : LaunchOptions {
  int num_nodes = 1, node_rank = 0, num_local_ranks = 1;
  std::string head_host;  // where the nodes meet; on one node, where the ranks meet: 127.0.0.1
  int head_port = 0;      // 0: any free one (one node only)
  std::string run_id;
  Starter starter = Starter::kFork;
  bool pin = false;                  // wanted; done only if there are enough cores
  std::vector<std::string> command;  // the first word can be executed
  std::vector<std::string> remarks;  // for the user, before anything is started
};

// `subcommands` are Tessera's own, which `self`, this executable, runs; any other first word is a program. Throws
// UsageError.
LaunchPlan make_plan(const LaunchSettings& settings, const HostFacts& host, const Environment& environment,
                     const std::string& self, const std::vector<std::string>& subcommands);

// torchrun's other flags: existing scripts keep working, or learn what to write instead.
void declare_habits(Schema& schema, LaunchSettings& settings);

// Throws UsageError that says how to do it here.
void refuse_what_is_done_otherwise(const LaunchSettings& settings);
// Lines about flags that were given and change nothing.
std::vector<std::string> remarks_on(const LaunchSettings& settings);

// The remark if --nproc_per_node is not given: torchrun would start one rank. Empty if so do we.
std::string remark_on_count(const LaunchPlan& plan, const HostFacts& host);

// For torchrun's `--tee 3`, whose value was read as the program: the same arguments with --tee=true (false for 0)
// instead, to be read again; otherwise nothing. `settings` is what was read from `arguments`.
std::optional<std::vector<std::string>> with_plain_tee(const std::vector<std::string>& arguments,
                                                       const LaunchSettings& settings);

// `tessera launch` from a finished plan to its exit status: attempts, restarts, agreement between nodes, the report.
//
// `self` is this executable, which can also serve as runner. Returns the exit status: 0 if all ranks exited with 0,
// else that of the rank that failed first (128 + signal if it was killed). Throws Error if nothing could be started.
int run_launcher(const LaunchPlan& plan, const HostFacts& host, const Environment& environment,
                 const std::string& self);

}  // namespace tessera
