// A meeting's store as c10d knows stores, so that NCCL and anything else that speaks c10d uses it.
//
// Any number of threads may use one, or clones of it. Every operation has a time limit; errors are Tessera's, without
// a backtrace.
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "comm/meeting/meeting_client.h"

namespace tessera {

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
  std::vector<Bytes> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) override;
  bool hasExtendedApi() const override { return true; }

 private:
  std::vector<std::string> get_when_set(const std::vector<std::string>& keys, std::chrono::milliseconds timeout,
                                        bool wants_values);

  std::shared_ptr<MeetingClient> client_;
};

}  // namespace tessera
