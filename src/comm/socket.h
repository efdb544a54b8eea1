// The small part of TCP that the meeting of ranks needs: every call has a deadline, every error names the address.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"

namespace tessera {

using Deadline = std::chrono::steady_clock::time_point;

// An open socket, non-blocking.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : fd_(descriptor) {}

  bool is_open() const { return static_cast<bool>(fd_); }
  int descriptor() const { return fd_.get(); }

  // Listens on the interface that has this address; an empty one: on all. Throws Error(kRendezvous) if the port is in
  // use, naming the port and what to do.
  static Socket listen(const std::string& address, int port);
  int local_port() const;
  // Nothing if nobody connects; never waits. `no_room`: this process or host has no descriptor left for one.
  std::optional<Socket> accept(bool* no_room = nullptr) const;
  std::string peer() const;  // its address, without the port

  // Keeps trying until the deadline if nothing listens there. Throws Error(kRendezvous).
  static Socket connect(const std::string& host, int port, Deadline deadline);

  enum class Got { kAll, kClosed, kNothingInTime };
  Got read_exactly(std::size_t num_bytes, Deadline deadline, std::string* bytes) const;
  // For a few bytes, which always fit into the socket's buffer. False if the other side is gone.
  bool write_all(std::string_view bytes) const;

 private:
  Fd fd_;
};

// Where a process that others reach by the name `host` should listen: the address of the interface that the name leads
// to; 127.0.0.1 if everybody is on this host. A name that leads to a loopback address, as Debian gives to a host's own,
// or to no interface of this host (a translated address) says nothing: empty, for all interfaces. Throws
// Error(kRendezvous) if the name cannot be resolved.
std::string interface_of(const std::string& host, bool one_host);

// Throws Error(kRendezvous) if the host name cannot be resolved.
void check_host_resolves(const std::string& host);

}  // namespace tessera
