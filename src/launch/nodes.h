// How the launchers of several nodes agree: they meet once, then share a store of texts, each written once.
//
// Node 0 serves the meeting and the store. A thread of each launcher exchanges with the store ten times a second, so
// that a head node that has gone silent cannot block the launcher, which only reads what the thread has seen. The
// keys of attempt K: "K/meeting" (port of the ranks' meeting place), "K/failed" (any text: end your ranks), "K/ended/N"
// (how node N's ranks ended), "K/verdict" (node 0's decision: what to report, and whether to try again); and "bye/N" at
// the end.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/meeting/meeting_client.h"
#include "launch/exit_report.h"
#include "launch/wire.h"

namespace tessera {

class NodeCircle {
 public:
  // `join` says where node 0 is and what the meeting's key is, and of this node its rank, how many there are, and the
  // settings that must be the same on all. A node that is silent for join.silence is lost.
  // Returns when all nodes have connected. Throws Error(kRendezvous) that says which node is missing, or which differs
  // and how.
  explicit NodeCircle(JoinOptions join);
  // Still sends what was put; node 0 then waits a moment until the others have read it.
  ~NodeCircle();
  NodeCircle(const NodeCircle&) = delete;
  NodeCircle& operator=(const NodeCircle&) = delete;

  void put(const std::string& key, const std::string& text);
  // The last known value in the store: from the second call for a key on, at most a fifth of a second old.
  std::optional<std::string> find(const std::string& key);
  std::string host(int node) const;
  // A sentence if a node is gone: the head, or, on node 0, any other.
  std::optional<std::string> loss() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // shared with the thread, which is left behind if it hangs in the store
};

// One attempt over several nodes, as one launcher sees it: where the ranks meet, which rank failed, what all nodes do
// next.
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
