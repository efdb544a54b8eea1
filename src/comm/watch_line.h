// How a rank's watchdog tells the others that something is wrong, and hears of it. Nothing here waits: for processes,
// the thread of the MeetingClient does the talking.
#pragma once

#include <optional>
#include <string>

#include "comm/meeting/inquest.h"

namespace tessera {

class WatchLine {
 public:
  virtual ~WatchLine() = default;
  virtual void raise(const Alarm& alarm) = 0;
  // This rank's flight recorder: the answer to an inquest, or its last words.
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
