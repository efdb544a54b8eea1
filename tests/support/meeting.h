// Ranks that meet in tests: real sockets, a thread for each rank.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/meeting/handshake.h"
#include "comm/meeting/meeting_place.h"
#include "comm/meeting/store.h"
#include "core/error.h"

namespace tessera::meeting_test {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

inline const Key kJobKey = random_key();

inline MeetingOptions meeting_of(int num_ranks, std::chrono::milliseconds timeout = 10s) {
  MeetingOptions options;
  options.num_peers = num_ranks;
  options.key = kJobKey;
  options.timeout = timeout;
  return options;
}

inline Peer peer(int rank, int world_size) {
  return {.rank = rank,
          .world_size = world_size,
          .host = "host" + std::to_string(rank),
          .pid = 100 + rank,
          .version = "v1"};
}

inline JoinOptions join_of(int port, const Peer& self, std::chrono::milliseconds timeout = 10s) {
  JoinOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.key = kJobKey;
  options.self = self;
  options.timeout = timeout;
  return options;
}

inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_TRUE(error.status() == ExitStatus::kRendezvous || error.status() == ExitStatus::kCollective);
    return error.what();
  }
  return "";
}

struct Met {
  std::vector<std::shared_ptr<MeetingClient>> clients;
  std::vector<std::string> errors;
};

// Each peer joins in its own thread.
inline Met meet(const MeetingPlace& place, const std::vector<Peer>& peers) {
  Met met;
  met.clients.resize(peers.size());
  met.errors.resize(peers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    threads.emplace_back([&, i] {
      met.errors[i] =
          error_of([&] { met.clients[i] = std::make_shared<MeetingClient>(join_of(place.port(), peers[i])); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return met;
}

inline Met meet(const MeetingPlace& place, int num_ranks) {
  std::vector<Peer> peers;
  for (int rank = 0; rank < num_ranks; ++rank) peers.push_back(peer(rank, num_ranks));
  Met met = meet(place, peers);
  for (const std::string& error : met.errors) EXPECT_EQ(error, "");
  return met;
}

inline MeetingStore store_of(const std::shared_ptr<MeetingClient>& client, std::chrono::milliseconds timeout = 5s) {
  return MeetingStore(client, timeout);
}

inline double seconds_of(const std::function<void()>& action) {
  const auto start = SteadyClock::now();
  action();
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace tessera::meeting_test
