// The small part of TCP that the lobby needs: every call has a deadline, every error names the address.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

using Deadline = std::chrono::steady_clock::time_point;

// An open socket; the destructor closes it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), unread_(std::move(other.unread_)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(unread_, other.unread_);
    return *this;
  }
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  // Throw Error(kRendezvous) on failure; accept and read_line return nothing when the deadline passes or the other side
  // closes.
  static Socket listen(int port);
  int local_port() const;
  std::optional<Socket> accept(Deadline deadline) const;
  // Keeps trying until the deadline if nothing listens there.
  static Socket connect(const std::string& host, int port, Deadline deadline);
  std::optional<std::string> read_line(Deadline deadline, std::size_t most_bytes = 1 << 20);
  // The other side has closed, and nothing is left to read.
  bool is_closed() const;
  // False if the other side is gone.
  bool write_line(const std::string& line);

 private:
  int descriptor_ = -1;
  std::string unread_;
};

}  // namespace tessera
