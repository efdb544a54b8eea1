// Ends a run on all ranks if its collectives hang or fail, with a message that says which rank did what.
//
// A thread looks at the flight recorder ten times a second. It touches neither the network, a disk nor a GPU and waits
// for nobody, so nothing can keep it from judging this rank's operations: the line's own thread does the talking, and
// another asks the GPU which operations have ended (CUDA may keep that one for as long as a peer is stopped). When an
// operation is overdue or failed, it raises the alarm; the process that holds the store collects every rank's recorder
// and finds out who is to blame (failure_report.h); all ranks get that finding and end. A rank that gets none in time,
// because it can reach nobody, ends by itself and says so.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/flight_recorder.h"
#include "comm/meeting/failure_report.h"

namespace tessera {

// How this rank's part in a failed run ends.
struct Ending {
  std::string message;
  int status = 1;
  bool speaks = false;          // this rank reports it to the user in full; the others in a line
  bool is_own_failure = false;  // this rank is to blame, in its own words
  bool is_consequence = false;  // another rank's end says more
};

struct WatchdogOptions {
  int rank = 0;
  std::chrono::milliseconds comm_timeout{600'000};
  // From the alarm to the finding: 2 s for the ranks' answers, and a second for the way.
  std::chrono::milliseconds finding_timeout{3'000};
  // Called once, on the watchdog's thread; ends the process (in tests and thread worlds, it returns).
  std::function<void(const Ending&)> end;
};

class Watchdog {
 public:
  Watchdog(std::shared_ptr<WatchLine> line, std::shared_ptr<FlightRecorder> recorder, WatchdogOptions options);
  ~Watchdog();

  // Called when this rank cannot continue: alerts the others, and returns when the run has been ended (in a process, it
  // does not return).
  void raise(const std::string& message, int status);

 private:
  void watch();
  void poll();
  void look(Clock::time_point now);
  void forgive(Clock::duration waited);
  std::optional<Alarm> own_trouble(Clock::time_point now) const;
  void sound(const Alarm& alarm);
  void end_unheard(std::chrono::milliseconds silence);  // whoever collects does not answer
  void end_by_own_words();
  void end(const Ending& ending);

  std::shared_ptr<WatchLine> line_;
  std::shared_ptr<FlightRecorder> recorder_;
  WatchdogOptions options_;
  std::mutex mutex_;  // guards what follows
  std::optional<Alarm> sounded_;
  Clock::time_point sounded_at_{};
  bool has_published_ = false, ended_ = false, stopping_ = false;
  std::condition_variable wake_, has_ended_;
  std::thread thread_, poller_;
};

}  // namespace tessera
