// What a launcher and its runners wait for: the line between them, and signals.
//
// The line is a Unix socket in the run folder, with one JSON object per packet.
// Either end sees the other's death at once, as the end of the line; a packet sent before that is still read.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <string>

#include "core/file.h"
#include "core/json.h"

namespace tessera {

class Line {
 public:
  explicit Line(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // Never blocks and never fails: a packet to a receiver that is gone or has stopped reading is lost.
  // `fds`: two descriptors that are handed over with it, or none: the receiver gets duplicates.
  void send(const Json& packet, std::initializer_list<int> fds = {}) const;

  enum class Got { kPacket, kNothingYet, kEnd };
  // Does not wait. `fds`, if given, receives the descriptors that came with the packet.
  Got receive(Json* packet, std::array<Fd, 2>* fds = nullptr) const;
  // The process at the other end; for who connected: the one that listens.
  pid_t peer() const;

 private:
  Fd fd_;
};

// Throw Error with path and reason.
Fd listen_at(const std::string& path);
std::optional<Line> accept_line(const Fd& listener);  // nothing if no runner is waiting
Line connect_to(const std::string& path);

// SIGTERM, SIGINT or SIGHUP: the sender wants the run to end, without a restart.
bool asks_to_end(int signal);

// Signals as something to wait for, like sockets and pipes, instead of interruptions.
//
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
