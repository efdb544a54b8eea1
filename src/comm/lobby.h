// Where the ranks of a run meet.
//
// One process (the launcher, or rank 0) opens a `LobbyServer` on the port that all ranks know. Each rank sends one line
// of JSON with its identity, its version and settings, and how long it will wait. When all have connected, the server
// compares them and answers all at once: with the roster and the port of a TCPStore, or with what is wrong (who never
// connected, who connected twice, who differs and how). Our own time limit holds at every step; TCPStore's own connect
// has none (it ignores its timeout when something else listens on the port).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "core/host.h"
#include "core/json.h"

namespace tessera {

struct Guest {
  int rank = 0;
  int world_size = 1;
  std::string host{};
  std::int64_t pid = 0;
  std::string job_id{};
  std::string version{};                          // of Tessera and torch: must be the same on all
  std::map<std::string, std::string> settings{};  // must be the same on all
  int node_rank = -1;                             // -1: unknown, derived from the hosts
};

// What a guest learns: all guests, in rank order, and the store to use from then on.
struct Meeting {
  std::vector<Guest> roster;
  c10::intrusive_ptr<c10d::Store> store;
};

class LobbyServer {
 public:
  // Listens on `port` of all interfaces (0: any free one). Throws Error(kRendezvous) if the port is in use, naming the
  // port and what to do. A thread serves the guests; `who` is what messages call them: "rank", "node". A guest of
  // another job than `job_id` is turned away (empty: any job).
  LobbyServer(int port, int num_guests, std::chrono::milliseconds timeout, std::string who = "rank",
              std::string job_id = {});
  ~LobbyServer();
  LobbyServer(const LobbyServer&) = delete;
  LobbyServer& operator=(const LobbyServer&) = delete;

  int port() const;
  // The server's own store; it lives as long as the server.
  c10::intrusive_ptr<c10d::Store> store() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws Error(kRendezvous) if the name does not resolve, nothing listens, something else listens, or the server
// refuses.
Meeting join_lobby(const std::string& host, int port, const Guest& self, std::chrono::milliseconds timeout,
                   const std::string& who = "rank");

// Versions of Tessera and torch, which must be the same on all ranks: "tessera 0.1.0, torch 2.11.0".
std::string version_text();

}  // namespace tessera
