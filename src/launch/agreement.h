// One attempt over several nodes, as one launcher sees it: where the ranks meet, which rank failed, what all nodes do
// next.
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

  void announce_meeting(int port);                                     // node 0
  std::optional<int> find_meeting(std::chrono::milliseconds timeout);  // the others; nothing: see lost_verdict

  // While the ranks run.
  void announce_failure();
  bool must_stop();

  // Called when this node's ranks have ended: waits for the other nodes and returns the overall verdict, the same on
  // all nodes.
  Verdict settle(const Verdict& own, int max_restarts);
  // The verdict when the agreement broke: a node is gone, or this launcher was told to end.
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
