// Serves the operations of a store to the guests of a meeting: reads requests, holds back those that wait for a key,
// writes replies. Knows no sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "comm/meeting/packet.h"
#include "comm/meeting/store_table.h"

namespace tessera {

std::string make_reply(std::uint64_t request, ReplyCode code, const std::vector<std::string>& values);

class StoreDesk {
 public:
  struct Reply {
    std::uint64_t guest;  // the number that came with the request
    std::string packet;
  };

  // One request. Throws ProtocolError if it cannot be read; one that is only wrong gets a reply that says so.
  void take(std::uint64_t guest, Word word, PacketReader& packet);
  // Those who have waited for a key for as long as they wanted are told so.
  void mind_the_clock();
  void forget(std::uint64_t guest);
  bool has_waiting() const { return !waiting_.empty(); }
  std::vector<Reply> take_replies();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::uint64_t guest, request;
    std::vector<std::string> keys;
    bool wants_values;
    Clock::time_point until;
  };
  void serve(std::uint64_t guest, std::uint64_t request, Word word, PacketReader& packet);
  void reply(std::uint64_t guest, std::uint64_t request, ReplyCode code, const std::vector<std::string>& values);
  void take_get(std::uint64_t guest, std::uint64_t request, PacketReader& packet);
  void serve_waiting();

  StoreTable table_;
  std::list<Waiting> waiting_;
  std::vector<Reply> replies_;
};

}  // namespace tessera
