// Where the ranks of a run meet, and the store that they share from then on: the server's side.
//
// One process, the launcher or rank 0, opens a MeetingPlace on a port that all ranks know. A thread serves it. Whoever
// connects must prove that it holds the job's key (handshake.h); anybody else is cut off without an answer. Each rank
// then says who it is, and when all have come they get the roster, or all get the reason why they cannot begin. From
// then on nobody else can connect: the port is closed, and the connections serve as the store, as sign of life of each
// rank, and for the failure report when one fails.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "comm/meeting/acceptor.h"
#include "comm/meeting/failure_report.h"
#include "comm/meeting/message_line.h"
#include "comm/meeting/store.h"

namespace tessera {

class MeetingPlace {
 public:
  // Throws Error(kRendezvous) if the port is in use, naming the port and what to do.
  explicit MeetingPlace(MeetingOptions options);
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  int port() const { return port_; }
  // By which this host's own processes reach it.
  std::string address() const { return options_.interface.empty() ? "127.0.0.1" : options_.interface; }
  // Every peer has said goodbye.
  bool all_have_left() const { return num_left_ == options_.num_peers; }

 private:
  enum class Phase { kGathering, kRunning, kRefused };
  struct Member {
    std::uint64_t number;  // of the connection, never used again
    MessageLine line;
    Clock::time_point hello_until;
    int rank = -1;  // -1: has not said who it is
    Loss loss = Loss::kNone;
  };

  void serve();
  void wait_for_news();
  void welcome();
  void hear(Member& member);
  void take(Member& member, const std::string& message);
  void seat(Member& member, PacketReader& packet);
  void lose(Member& member, Loss loss);
  void mind_the_clock();
  void begin();
  void refuse_all(const std::string& why);
  void tell_all(const PacketWriter& packet);
  void send_replies();
  Member* find(std::uint64_t number);

  const MeetingOptions options_;
  WakeUp wake_up_;
  Acceptor acceptor_;
  const int port_;
  PeerBook book_;
  Phase phase_ = Phase::kGathering;
  std::list<Member> members_;
  std::uint64_t last_number_ = 0;
  StoreServer store_;
  std::optional<FailureReport> report_;  // once all have come
  bool has_inquired_ = false;
  Clock::time_point refused_at_{};
  std::atomic<int> num_left_{0};
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

}  // namespace tessera
