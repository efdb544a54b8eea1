// The door of a meeting place: whoever connects must prove that it holds the job's key, or is cut off without a word.
//
// What strangers can cost is bounded: so many connections at a time (a new one takes the place of the oldest), 64 bytes
// read from each, a few seconds for the proof, and one line in the log for the whole run. Nothing here waits.
#pragma once

#include <poll.h>

#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "comm/meeting/handshake.h"
#include "comm/socket.h"

namespace tessera {

class Door {
 public:
  Door(const std::string& interface, int port, const Key& job_key)
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
