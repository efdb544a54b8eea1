// The store that the ranks of a run share: the server's side and a rank's side.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "comm/meeting/meeting_client.h"
#include "comm/meeting/message_line.h"

namespace tessera {

std::string make_reply(std::uint64_t request, ReplyCode code, const std::vector<std::string>& values);

// Serves the operations of a store, with the meaning that c10d gives them, to the peers of a meeting: reads requests,
// holds back those that wait for a key, writes replies. Knows no sockets.
class StoreServer {
 public:
  struct Reply {
    std::uint64_t peer;  // the number that came with the request
    std::string packet;
  };

  // One request. Throws ProtocolError if it cannot be read; one that is only wrong gets a reply that says so.
  void take(std::uint64_t peer, MessageType type, PacketReader& packet);
  // Those who have waited for a key for as long as they wanted are told so.
  void mind_the_clock();
  void forget(std::uint64_t peer);
  bool has_waiting() const { return !waiting_.empty(); }
  std::vector<Reply> take_replies();

 private:
  struct Waiting {
    std::uint64_t peer, request;
    std::vector<std::string> keys;
    bool wants_values;
    Clock::time_point until;
  };
  void serve(std::uint64_t peer, std::uint64_t request, MessageType type, PacketReader& packet);
  void reply(std::uint64_t peer, std::uint64_t request, ReplyCode code, const std::vector<std::string>& values);
  void serve_waiting();
  bool has_all(const std::vector<std::string>& keys) const;
  // The value is a number as text; one that is absent counts as 0.
  std::int64_t add(const std::string& key, std::int64_t amount);
  // Sets `desired` if the value is `expected`, or if there is none and `expected` is empty. Returns the value then; if
  // there is none, `expected`.
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired);

  std::map<std::string, std::string> values_;
  std::list<Waiting> waiting_;
  std::vector<Reply> replies_;
};

// A meeting's store as c10d knows stores, so that NCCL and anything else that speaks c10d uses it.
//
// Any number of threads may use one, or clones of it. Every operation has a time limit; errors are Tessera's, without
// a backtrace.
class MeetingStore : public c10d::Store {
 public:
  // `timeout` limits waiting for a key.
  MeetingStore(std::shared_ptr<MeetingClient> client, std::chrono::milliseconds timeout);

  using Bytes = std::vector<std::uint8_t>;
  using c10d::Store::compareSet;
  using c10d::Store::set;
  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  Bytes get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const Bytes& value) override;
  bool hasExtendedApi() const override { return true; }  // append; multiGet and multiSet are the base's

 private:
  std::vector<std::string> get_when_set(const std::vector<std::string>& keys, std::chrono::milliseconds timeout,
                                        bool wants_values);

  std::shared_ptr<MeetingClient> client_;
};

}  // namespace tessera
