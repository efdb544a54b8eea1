// Where the ranks of a run meet, and the store that they share from then on: the server's side.
//
// One process, the launcher or rank 0, opens a MeetingPlace on a port that all ranks know. A thread serves it. Whoever
// connects must prove that it holds the job's key (handshake.h); anybody else is cut off without an answer. Each rank
// then says who it is, and when all have come they get the roster, or all get the reason why they cannot begin. From
// then on nobody else can connect: the port is closed, and the connections serve as the store, as sign of life of each
// rank, and for the failure report when one fails.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/meeting/handshake.h"

namespace tessera {

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

class MeetingPlace {
 public:
  // Throws Error(kRendezvous) if the port is in use, naming the port and what to do.
  explicit MeetingPlace(MeetingOptions options);
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  int port() const;
  // By which this host's own processes reach it.
  std::string address() const;
  // Every peer has said goodbye.
  bool all_have_left() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
