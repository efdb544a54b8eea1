#include "comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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

// A connected socket, or the reason for the failure.
Socket try_connect(const addrinfo& address, Deadline deadline, int& reason) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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

}  // namespace

Socket::~Socket() {
  if (is_open()) close(descriptor_);
}

Socket Socket::listen(int port) {
  // One IPv6 socket serves both families; a host without IPv6 gets an IPv4 one.
  for (int family : {AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) continue;
    const int on = 1, off = 0;
    setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = v4.sin_port = htons(static_cast<std::uint16_t>(port));
    v4.sin_family = AF_INET;
    if (family == AF_INET6) setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    const bool bound = family == AF_INET6
                           ? bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&v6), sizeof(v6)) == 0
                           : bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&v4), sizeof(v4)) == 0;
    if (bound && ::listen(socket.descriptor(), SOMAXCONN) == 0) return socket;
    if (errno == EADDRINUSE) {
      throw rendezvous_error(
          fmt::format("port {} is in use on this host, by another job or program: choose another one "
                      "(MASTER_PORT, --master_port), or leave it out to get a free one",
                      port));
    }
  }
  throw rendezvous_error(fmt::format("cannot listen on port {}: {}", port, std::strerror(errno)));
}

int Socket::local_port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  const auto port = address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                  : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return ntohs(port);
}

std::optional<Socket> Socket::accept(Deadline deadline) const {
  if (!wait_for(descriptor_, POLLIN, deadline)) return std::nullopt;
  Socket guest(accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!guest.is_open()) return std::nullopt;
  return guest;
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

std::optional<std::string> Socket::read_line(Deadline deadline, std::size_t most_bytes) {
  while (true) {
    const auto end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > most_bytes || !wait_for(descriptor_, POLLIN, deadline)) return std::nullopt;
    char buffer[4096];
    const ssize_t count = recv(descriptor_, buffer, sizeof(buffer), 0);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return std::nullopt;
    if (count > 0) unread_.append(buffer, static_cast<std::size_t>(count));
  }
}

bool Socket::is_closed() const {
  char byte;
  return recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool Socket::write_line(const std::string& line) {
  const std::string text = line + '\n';
  std::size_t sent = 0;
  const Deadline deadline = steady_clock::now() + std::chrono::seconds(10);
  while (sent < text.size()) {
    const ssize_t count = send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) {
      if (!wait_for(descriptor_, POLLOUT, deadline)) return false;
    } else if (count < 0 && errno != EINTR) {
      return false;
    } else if (count > 0) {
      sent += static_cast<std::size_t>(count);
    }
  }
  return true;
}

}  // namespace tessera
