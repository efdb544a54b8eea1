#include "comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "core/error.h"

namespace tessera {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

int milliseconds_left(Deadline deadline) {
  const auto left = duration_cast<milliseconds>(deadline - steady_clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

bool wait_for(int descriptor, short events, Deadline deadline) {
  pollfd watched{descriptor, events, 0};
  int ready;
  do {
    ready = poll(&watched, 1, milliseconds_left(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    throw rendezvous_error(fmt::format(
        "the host name '{}' cannot be resolved ({}): check MASTER_ADDR or --rdzv_endpoint", host, gai_strerror(code)));
  }
  return {found, freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return text.data();
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

Socket make_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A connected socket, or the reason for the failure.
Socket try_connect(const addrinfo& address, Deadline deadline, int& reason) {
  Socket socket = make_socket(address.ai_family);
  if (!socket.is_open()) {
    reason = errno;
    return {};
  }
  if (::connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0) {
    reason = errno;
    if (errno != EINPROGRESS) return {};
    if (!wait_for(socket.descriptor(), POLLOUT, deadline)) {
      reason = ETIMEDOUT;
      return {};
    }
    socklen_t length = sizeof(reason);
    getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason != 0) return {};
  }
  return socket;
}

// Closed, with the reason in errno, if it cannot listen there.
Socket listen_at(const std::string& address, int port) {
  const AddressList addresses = resolve(address, port);
  Socket socket = make_socket(addresses->ai_family);
  if (!socket.is_open()) return {};
  const int on = 1, off = 0;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // One IPv6 socket serves both families.
  if (addresses->ai_family == AF_INET6) {
    setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(socket.descriptor(), addresses->ai_addr, addresses->ai_addrlen) != 0) return {};
  return ::listen(socket.descriptor(), SOMAXCONN) == 0 ? std::move(socket) : Socket();
}

}  // namespace

Socket Socket::listen(const std::string& address, int port) {
  Socket socket = listen_at(address.empty() ? "::" : address, port);
  // A host without IPv6.
  if (!socket.is_open() && address.empty() && errno != EADDRINUSE) socket = listen_at("0.0.0.0", port);
  if (socket.is_open()) return socket;
  if (errno == EADDRINUSE) {
    throw rendezvous_error(
        fmt::format("port {} is in use on this host, by another job or program: choose another one "
                    "(MASTER_PORT, --master_port), or leave it out to get a free one",
                    port));
  }
  throw rendezvous_error(fmt::format("cannot listen on port {} of {}: {}", port,
                                     address.empty() ? "this host" : address, std::strerror(errno)));
}

int Socket::local_port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
  const auto port = address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                  : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return ntohs(port);
}

std::optional<Socket> Socket::accept(bool* no_room) const {
  Socket peer(accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (peer.is_open()) return peer;
  if (no_room != nullptr) *no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  return std::nullopt;
}

std::string Socket::peer() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getpeername(descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return "?";
  return numeric(reinterpret_cast<sockaddr*>(&address), length);
}

Socket Socket::connect(const std::string& host, int port, Deadline deadline) {
  const AddressList addresses = resolve(host, port);
  int reason = ETIMEDOUT;
  do {
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      // One address that swallows packets must not use up the time of the others.
      Socket socket = try_connect(*address, std::min(deadline, steady_clock::now() + std::chrono::seconds(2)), reason);
      if (socket.is_open()) return socket;
    }
    std::this_thread::sleep_for(milliseconds(20));  // rank 0 may still be starting
  } while (milliseconds_left(deadline) > 0);
  throw rendezvous_error(
      fmt::format("no answer from {}:{} ({}): is rank 0 running there, and is the port open between the hosts?", host,
                  port, std::strerror(reason)));
}

Socket::Got Socket::read_exactly(std::size_t num_bytes, Deadline deadline, std::string* bytes) const {
  std::array<char, 512> buffer;
  while (bytes->size() < num_bytes) {
    if (!wait_for(descriptor(), POLLIN, deadline)) return Got::kNothingInTime;
    const ssize_t count = recv(descriptor(), buffer.data(), std::min(buffer.size(), num_bytes - bytes->size()), 0);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return Got::kClosed;
    if (count > 0) bytes->append(buffer.data(), static_cast<std::size_t>(count));
  }
  return Got::kAll;
}

bool Socket::write_all(std::string_view bytes) const {
  const ssize_t count = send(descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return count == static_cast<ssize_t>(bytes.size());
}

std::string interface_of(const std::string& host, bool one_host) {
  const AddressList addresses = resolve(host, 0);
  if (one_host) return "127.0.0.1";
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const std::string text = numeric(address->ai_addr, address->ai_addrlen);
    if (is_loopback(text) && host != text && host != "localhost") continue;
    const Socket probe = make_socket(address->ai_family);
    if (probe.is_open() && bind(probe.descriptor(), address->ai_addr, address->ai_addrlen) == 0) return text;
  }
  return {};
}

void check_host_resolves(const std::string& host) {
  resolve(host, 0);
}

}  // namespace tessera
