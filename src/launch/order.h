// The order that a launcher gives to the minders of its node: what to run, as which ranks, in what environment.
//
// It is written as order.json into the launcher's private run folder, where the minders read it; the folder also
// holds the launcher's socket and the ranks' failure files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

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
};

// What is set for one rank: torchrun's variables and ours.
std::map<std::string, std::string> rank_environment(const RankOrder& order, int local_rank);

std::string socket_path(const std::string& folder);
std::string failure_path(const RankOrder& order, int local_rank);
std::string log_path(const RankOrder& order, int local_rank);  // empty without log_dir

void write_order(const RankOrder& order);
RankOrder read_order(const std::string& folder);

}  // namespace tessera
