// Where the ranks of a run meet, and the store that they share from then on: a rank's side. See meeting_place.h.
//
// One connection serves the store's operations of all threads and the watchdog. A thread does the talking; callers wait
// for their reply at most as long as they say.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/meeting/acceptor.h"
#include "comm/meeting/failure_report.h"
#include "comm/meeting/message_line.h"

namespace tessera {

struct JoinOptions {
  std::string host;
  int port = 0;
  Key key{};  // of the job
  Peer self{};
  std::chrono::milliseconds timeout{60'000};
  std::string who = "rank";
  std::string holder = "rank 0";             // what messages call the process that holds the meeting place
  std::chrono::milliseconds silence{4'000};  // as in MeetingOptions
};

class MeetingClient : public WatchLine {
 public:
  // Returns when all peers have come. Throws Error(kRendezvous) if the name does not resolve, nothing listens, what
  // listens is something else or does not hold the job's key, or the meeting fails.
  explicit MeetingClient(const JoinOptions& options);
  ~MeetingClient() override;
  MeetingClient(const MeetingClient&) = delete;
  MeetingClient& operator=(const MeetingClient&) = delete;

  const std::vector<Peer>& roster() const { return roster_; }

  // A request of the store: `fields` are what follows the request's number. Returns the values of the reply; nothing if
  // the key that it waits for was not set within `patience` (the meeting place keeps that time). Throws Error if there
  // is no reply in time or the connection is lost.
  std::optional<std::vector<std::string>> request(MessageType type, const std::string& fields,
                                                  std::chrono::milliseconds patience = {});
  // This rank leaves in peace: its silence is no loss from now on. Throws Error if there is no answer.
  void say_goodbye();

  void raise(const Alarm& alarm) override;
  void publish(const std::string& flight) override;
  News news() override;
  std::string holder() const override;

 private:
  struct Pending {
    MessageType type{};
    bool is_done = false;
    ReplyCode code = ReplyCode::kOk;
    std::vector<std::string> values{};
  };
  void join(const JoinOptions& options);
  void talk();
  void beat();
  void pass_messages();
  void take(const std::string& message);
  void post(std::string message);
  void note_loss(Loss loss);
  std::string lost_text() const;  // with the mutex held

  const std::string holder_, own_name_;
  const std::chrono::milliseconds silence_;
  WakeUp wake_up_;
  std::vector<Peer> roster_;
  std::optional<MessageLine> line_;  // of the thread, once it runs

  mutable std::mutex mutex_;  // never held while talking
  std::condition_variable has_news_;
  std::vector<std::string> outbox_;
  std::map<std::uint64_t, Pending> pending_;
  std::uint64_t last_request_ = 0;
  News news_;
  std::optional<std::string> roster_text_, refusal_;
  Loss loss_ = Loss::kNone;
  bool has_left_ = false, is_stopping_ = false;
  int num_unanswered_beats_ = 0;
  Clock::time_point next_beat_{};  // of the thread
  std::thread thread_;
};

}  // namespace tessera
