// Signals as something to wait for, like sockets and pipes, instead of interruptions.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

#include "launch/wire.h"

namespace tessera {

// SIGTERM, SIGINT or SIGHUP: the sender wants the run to end, without a restart.
bool asks_to_end(int signal);

// Blocks the given signals for this thread and for those it starts later, and collects them. A signal that was ignored
// when this process started (nohup, `&` in a script) stays ignored; except SIGCHLD, or children could not be waited
// for. Construct before any thread is started.
class SignalInbox {
 public:
  SignalInbox(std::initializer_list<int> signals);
  ~SignalInbox() { restore_mask(); }
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int fd() const { return fd_.get(); }  // readable when a signal has arrived
  std::optional<int> next();            // does not wait

  struct Received {
    int signal = 0;
    bool is_from_terminal = false;  // Ctrl-C and the like, which the whole process group gets
  };
  std::optional<Received> next_received();  // likewise
  // Restores the former mask: for a child before exec, and while this process has nothing to clean up.
  void restore_mask() const;
  const sigset_t& former_mask() const { return former_; }

 private:
  sigset_t set_, former_;
  Fd fd_;
};

}  // namespace tessera
