// The line between a launcher and its minders: a Unix socket in the run folder, one JSON object per packet.
//
// Either end sees the other's death at once, as the end of the line; a packet sent before that is still read.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/file_descriptor.h"
#include "core/json.h"

namespace tessera {

std::int64_t now_ms();  // since the epoch, the form used in packets

class Line {
 public:
  explicit Line(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // Never blocks and never fails: a packet to a receiver that is gone or has stopped reading is lost.
  void send(const Json& packet) const;
  // Hands over two descriptors with the packet: the receiver gets duplicates.
  void send_with_fds(const Json& packet, const std::array<int, 2>& fds) const;

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
std::optional<Line> accept_line(const Fd& listener);  // nothing if no minder is waiting
Line connect_to(const std::string& path);

}  // namespace tessera
