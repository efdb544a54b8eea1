// Signals as something to wait for beside sockets and pipes, rather than as interruptions.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

#include "launch/wire.h"

namespace tessera {

// SIGTERM, SIGINT or SIGHUP: whoever sends it wants an end, and no restart.
bool asks_to_end(int signal);

// Blocks the given signals for this thread and for those it starts later, and collects them. One that was ignored
// when this process started (nohup, `&` in a script) stays ignored; but SIGCHLD never is, or no child could be waited
// for. Construct before any thread is started.
class SignalInbox {
 public:
  SignalInbox(std::initializer_list<int> signals);
  ~SignalInbox() { restore_mask(); }
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int fd() const { return fd_.get(); }  // readable when one has come
  std::optional<int> next();            // does not wait
  // The mask as it was: for a child before exec, and while this process has nothing to clean up.
  void restore_mask() const;
  const sigset_t& former_mask() const { return former_; }

 private:
  sigset_t set_, former_;
  Fd fd_;
};

}  // namespace tessera
