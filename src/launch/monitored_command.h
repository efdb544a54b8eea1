// A program that this process starts and waits for: signals are passed on to it, and its orphans stay in sight.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "launch/wire.h"

namespace tessera {

// The program cannot be started: the reason, and the status by which a shell reports it.
class CommandError : public UsageError {
 public:
  CommandError(const std::string& message, int shell_status) : UsageError(message), shell_status_(shell_status) {}
  int shell_status() const { return shell_status_; }  // 127: there is none; 126: it cannot be run

 private:
  int shell_status_;
};

class MonitoredCommand {
 public:
  // Looks the program up. From now on SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are taken only to be passed
  // on: construct before any thread is started. Throws CommandError, as start() does.
  explicit MonitoredCommand(std::vector<std::string> words);

  // From now on this process adopts grandchildren whose parents end.
  void start();
  // Returns the exit status, 128 + signal if one ended it. A signal from the terminal is not passed on: it has reached
  // the command already, since both are in one process group.
  int wait();

 private:
  SignalInbox inbox_{{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}};
  std::vector<std::string> words_;
  std::string program_;
  pid_t pid_ = -1;
};

}  // namespace tessera
