// The settings of `tessera launch`, and the plan that follows from them on this host.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"
#include "launch/host.h"

namespace tessera {

// torchrun's flags under their own names, and a few of ours.
struct LaunchSettings {
  std::string nnodes, nproc_per_node, rdzv_backend, rdzv_id, rdzv_endpoint, master_addr, log_dir, starter, pin;
  int node_rank = -1, master_port = 0, max_restarts = 0;
  bool standalone = false, use_env = false, tee = false;
  // torchrun's own: some change nothing here, others ask for something that is done differently here.
  std::string role, monitor_interval, start_method, local_addr, redirects, rdzv_conf, local_ranks_filter;
  bool no_python = false, module = false;
  std::chrono::milliseconds start_timeout{}, stop_timeout{}, node_timeout{};
  std::vector<std::string> command;  // PROGRAM or SUBCOMMAND and what follows it
};

void declare(Schema& schema, LaunchSettings& settings);

enum class Starter { kFork, kMpirun };

// Everything is decided; run_launcher() carries it out.
struct LaunchPlan {
  int num_nodes = 1, node_rank = 0, num_local_ranks = 1;
  std::string head_host;  // where the nodes meet; on one node, where the ranks meet: 127.0.0.1
  int head_port = 0;      // 0: any free one (one node only)
  std::string run_id;
  int max_restarts = 0;
  Starter starter = Starter::kFork;
  bool pin = false;  // wanted; done only if there are enough cores
  bool tee = false;
  std::string log_dir;
  std::chrono::milliseconds start_timeout{}, stop_timeout{}, node_timeout{};
  std::vector<std::string> command;  // the first word can be executed
  std::vector<std::string> remarks;  // for the user, before anything is started
};

// `subcommands` are Tessera's own, which `self`, this executable, runs; any other first word is a program. Throws
// UsageError.
LaunchPlan make_plan(const LaunchSettings& settings, const HostFacts& host, const Environment& environment,
                     const std::string& self, const std::vector<std::string>& subcommands);

}  // namespace tessera
