// Finds out why a run failed, once for all its ranks.
//
// A rank raises the alarm, or its connection is lost. Then every rank that can sends its flight recorder; when all
// have, or the time is up, there is one finding, which all ranks get and report. Whoever holds the store
// makes the report.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/flight_recorder.h"
#include "comm/meeting/message_line.h"

namespace tessera {

// "This run cannot continue", said by one rank.
struct Alarm {
  int rank = 0;
  int status = 1;                      // the exit status of all ranks; never 0
  std::string message;                 // what the rank says
  std::optional<FlightEntry> stuck{};  // the operation to explain, if one is to blame

  static void visit_fields(auto& alarm, const auto& visit) {
    visit("rank", alarm.rank);
    visit("status", alarm.status);
    visit("message", alarm.message);
    visit("stuck", alarm.stuck);
  }
  std::string to_text() const;
  static Alarm from_text(const std::string& text);  // throws ProtocolError
};

// Why the run failed: the same on all ranks.
struct Finding {
  std::string message;
  int status = 1;
  int speaker = 0;        // the rank that reports it in full
  bool is_plain = false;  // the speaker's own failure, in its own words
  bool is_loss = false;   // ranks are gone; how they ended may be known elsewhere, and says more

  static void visit_fields(auto& finding, const auto& visit) {
    visit("message", finding.message);
    visit("status", finding.status);
    visit("speaker", finding.speaker);
    visit("is_plain", finding.is_plain);
    visit("is_loss", finding.is_loss);
  }
  std::string to_text() const;
  static Finding from_text(const std::string& text);  // throws ProtocolError
};

class FailureReport {
 public:
  struct Options {
    std::string holder{};                            // of the store: "rank 0 on node1", "the launcher on node1"
    std::string holder_host{};                       //
    std::vector<std::string> hosts{};                // by rank
    std::chrono::milliseconds answer_timeout{2000};  // for the ranks to send their recorders
    std::chrono::milliseconds loss_grace{500};       // several ranks of a host are lost one after another
    std::chrono::milliseconds silence{4000};         // after which a host counts as unreachable, for messages
  };
  explicit FailureReport(Options options) : options_(std::move(options)) {}

  void hear_alarm(const Alarm& alarm);
  void hear_flight(int rank, const std::string& dump);
  void note_leave(int rank) { left_.insert(rank); }
  void note_loss(int rank, Loss loss);
  // The holder itself was stopped for so long: what follows at once is its own fault.
  void note_own_pause(std::chrono::milliseconds pause);

  int num_left() const { return static_cast<int>(left_.size()); }
  // Every rank is to send its recorder.
  bool is_open() const { return opened_.has_value(); }
  // Once: as soon as it is known.
  std::optional<Finding> conclude(Clock::time_point now);

 private:
  bool is_present(int rank) const { return left_.count(rank) == 0 && losses_.count(rank) == 0; }
  bool all_have_answered() const;
  int lowest_that_answered() const;
  Finding finding() const;
  std::string loss_text(Loss loss) const;
  std::string explain_stuck() const;

  Options options_;
  std::optional<Clock::time_point> opened_, first_loss_;
  bool is_concluded_ = false;
  std::optional<Alarm> alarm_;
  std::map<int, Loss> losses_;
  std::chrono::milliseconds own_pause_{0};
  Clock::time_point paused_until_{};
  std::set<int> left_;
  std::set<int> alarmed_;  // ranks that have raised the alarm: they may end before the finding
  Flights flights_;        // by rank
};

// "rank 2 on node3", "ranks 4-7 on node2", "ranks 1-3 on node1, node2".
std::string name_ranks(const std::vector<int>& ranks, const std::vector<std::string>& hosts);

// The words for hosts that no longer answer each other; `a` and `b` name processes with their hosts.
std::string lost_contact_text(const std::string& a, const std::string& b, std::chrono::milliseconds silence);

// How a rank's watchdog tells the others that something is wrong, and hears of it. Nothing here waits: for processes,
// the thread of the MeetingClient does the talking.
class WatchLine {
 public:
  virtual ~WatchLine() = default;
  virtual void raise(const Alarm& alarm) = 0;
  // This rank's flight recorder: the answer to an inquiry, or its last message.
  virtual void publish(const std::string& flight) = 0;

  struct News {
    bool is_inquiry = false;               // publish your recorder
    std::optional<Finding> finding{};      // why the run failed
    std::string lost{};                    // why nothing more can be heard; empty: all is well
    std::chrono::milliseconds silence{0};  // since the process that collects has last answered
  };
  virtual News news() = 0;
  // What messages call the process that collects, with its host: "rank 0 on node1".
  virtual std::string holder() const = 0;
};

}  // namespace tessera
