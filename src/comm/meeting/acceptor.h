// Who takes part in a meeting: what a process says about itself, who has come, and who is let in.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "comm/meeting/handshake.h"
#include "comm/socket.h"
#include "core/host.h"
#include "core/json.h"

namespace tessera {

// What a process says about itself when it joins a meeting, and what it learns about the others.
struct Peer {
  int rank = 0;
  int world_size = 1;
  std::string host{};
  std::int64_t pid = 0;
  std::string version{};                          // of Tessera and torch: must be the same on all
  std::map<std::string, std::string> settings{};  // must be the same on all
  int node_rank = -1;                             // -1: unknown, derived from the hosts
};

Json to_json(const Peer& peer);
// Throws ProtocolError if a field is missing or out of its range.
Peer peer_from_json(const Json& json);

// Versions of Tessera and torch, which must be the same on all ranks: "tessera 0.1.0, torch 2.11.0".
std::string version_text();

struct MeetingOptions {
  std::string interface = "127.0.0.1";        // the address to listen on; empty: all of this host's
  int port = 0;                               // 0: any free one
  int num_peers = 1;                          //
  Key key{};                                  // of the job
  std::chrono::milliseconds timeout{60'000};  // for all to come
  std::string who = "rank";                   // what messages call the peers: "rank", "node"
  std::string holder = "rank 0";              // what they call this process
  std::vector<std::string> hosts{};           // of each peer, for messages; empty: not known before they come
  std::chrono::milliseconds silence{4'000};   // a host that does not answer for so long is lost
  std::chrono::milliseconds loss_grace{500};  // between the loss of a rank and the finding
};

// Who has come to a meeting, and whether it can begin: the decisions of a MeetingPlace, without its sockets.
class PeerBook {
 public:
  using Clock = std::chrono::steady_clock;

  PeerBook(const MeetingOptions& options, int port)
      : options_(options), port_(port), deadline_(Clock::now() + options.timeout) {}

  // Enters a peer that waits for `patience`. Returns why the meeting must fail, or nothing.
  std::string enter(const Peer& peer, std::chrono::milliseconds patience);
  bool is_complete() const { return static_cast<int>(entries_.size()) == options_.num_peers; }

  // Why the meeting must fail now, or nothing: somebody is missing and the time is up (the server's, or that of the
  // first peer that stops waiting).
  std::string absence(Clock::time_point now) const;
  // A peer has gone before the meeting began.
  std::string departure(int rank) const;
  // The peers differ; asked when all have come.
  std::string disagreement() const;

  // In rank order, without the settings: they are equal on all, and long.
  std::vector<Peer> roster() const;

 private:
  struct Entry {
    Peer peer;
    Clock::time_point until;
    std::chrono::milliseconds patience;
  };
  std::string name_of(const Peer& peer) const;
  std::string difference(const Peer& a, const Peer& b) const;

  const MeetingOptions& options_;  // of the meeting place
  const int port_;
  const Clock::time_point deadline_;
  std::map<int, Entry> entries_;  // by rank
};

// Accepts connections: whoever connects must prove that it holds the job's key, or is cut off without an answer.
//
// What strangers can cost is bounded: so many connections at a time (a new one takes the place of the oldest), 64 bytes
// read from each, a few seconds for the proof, and one line in the log for the whole run. Nothing here waits.
class Acceptor {
 public:
  Acceptor(const std::string& interface, int port, const Key& job_key)
      : listener_(Socket::listen(interface, port)), key_(job_key) {}

  int port() const { return listener_.local_port(); }
  // Adds what to poll for.
  void watch(std::vector<pollfd>* fds) const;

  struct Admitted {
    Socket socket;
    SessionKeys keys;
  };
  // Lets in those who have proved themselves since the last call.
  std::vector<Admitted> admit();
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Visitor {
    Socket socket;
    Key nonce;
    Clock::time_point until;
    std::string answer{};
  };
  void accept_visitors();
  void turn_away(std::list<Visitor>::iterator visitor);

  Socket listener_;
  Key key_;
  std::list<Visitor> visitors_;  // the oldest first
  Clock::time_point accept_again_{};
};

}  // namespace tessera
