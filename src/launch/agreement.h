// One attempt over several nodes, as one launcher sees it: where the ranks meet, who failed, what everybody does next.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launch/nodes.h"
#include "launch/signals.h"
#include "launch/verdict.h"

namespace tessera {

class Agreement {
 public:
  Agreement(NodeCircle& circle, int node_rank, int num_nodes, int attempt, SignalInbox& inbox)
      : circle_(circle), node_rank_(node_rank), num_nodes_(num_nodes), attempt_(attempt), inbox_(inbox) {}

  void announce_lobby(int port);                                     // node 0
  std::optional<int> find_lobby(std::chrono::milliseconds timeout);  // the others; nothing: see lost_verdict

  // While the ranks run.
  void announce_failure();
  bool must_stop();

  // When this node's ranks have ended: waits for the other nodes and returns the verdict over all, the same everywhere.
  Verdict settle(const Verdict& own, int max_restarts);
  // What is left to say when the agreement broke: a node is gone, or this launcher was told to end.
  Verdict lost_verdict() const;

 private:
  std::string key(const std::string& name) const;
  std::optional<std::string> wait_for(const std::string& name, std::optional<std::chrono::milliseconds> timeout);
  bool is_interrupted();
  Verdict collect(const Verdict& own);

  NodeCircle& circle_;
  int node_rank_, num_nodes_, attempt_;
  SignalInbox& inbox_;
  int signal_ = 0;
  std::string loss_;
};

}  // namespace tessera
