// Ends a run on all ranks if its collectives hang or fail, with a message that says which rank did what.
//
// A thread looks at the flight recorder a few times a second. When an operation is overdue or failed, or when another
// rank has raised the alarm in the store, every rank publishes its recorder, waits briefly for the others', and exits
// with status 43; the lowest rank that answers prints the diagnosis. It needs nothing from the thread that hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "comm/flight_recorder.h"

namespace tessera {

struct WatchdogOptions {
  int rank = 0;
  int world_size = 1;
  std::vector<std::string> hosts;  // by rank, for messages
  std::chrono::milliseconds comm_timeout{600'000};
  std::chrono::milliseconds answer_timeout{2'000};  // how long the others may take to publish
  // Called once, on the watchdog's or the failing thread, with the message and the exit status; ends the process (in
  // tests, records the call). `is_consequence`: another rank is to blame. `speaks`: this rank reports to the user.
  std::function<void(const std::string& message, int status, bool is_consequence, bool speaks)> end;
};

class Watchdog {
 public:
  // No other thread may use `store`: TCPStore serves one call at a time, and a blocked one would blind us.
  Watchdog(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<FlightRecorder> recorder, WatchdogOptions options);
  ~Watchdog();

  // Called when this rank cannot continue: alerts the others, gives a diagnosis if a collective is to blame, and ends.
  void raise(const std::string& message, int status);

  // Called when this rank is done: its recorder stays in the store, for a diagnosis of the ranks that continue without
  // it.
  void publish_last_words();

 private:
  struct Alarm {
    int rank = 0;
    int status = 0;
    std::string message;               // what the raising rank says
    std::optional<FlightEntry> stuck;  // the collective to diagnose, if one is to blame

    std::string to_text() const;
    static Alarm from_text(const std::string& text);
  };

  void watch();
  void check_own_operations();
  void check_alarm_of_others();
  void respond(const Alarm& alarm);
  Alarm publish(const Alarm& alarm);
  std::map<int, std::vector<FlightEntry>> collect();

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<FlightRecorder> recorder_;
  WatchdogOptions options_;
  std::mutex mutex_;    // one response at a time, and store_
  bool ended_ = false;  // guarded by mutex_
  std::chrono::steady_clock::time_point store_lost_since_{};
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tessera
