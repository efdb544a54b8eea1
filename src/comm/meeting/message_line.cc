#include "comm/meeting/message_line.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tessera {
namespace {

constexpr std::size_t kLengthBytes = 4;

Key seal_of(const Key& key, std::uint64_t number, std::string_view message) {
  return keyed_hash(key, {PacketWriter().number(number).bytes(), message});
}

Loss loss_of(int error) {
  switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
      return Loss::kUnreachable;
    default:
      return Loss::kEnded;
  }
}

}  // namespace

WakeUp::WakeUp() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!fd_) throw Error(std::string("cannot make an event descriptor: ") + std::strerror(errno));
}

void WakeUp::ring() const {
  const std::uint64_t one = 1;
  (void)!write(fd_.get(), &one, sizeof one);
}

void WakeUp::clear() const {
  std::uint64_t count = 0;
  (void)!read(fd_.get(), &count, sizeof count);
}

std::string MessageSealer::seal(std::string_view message) {
  if (message.empty() || message.size() > kMostMessageBytes) {
    throw ProtocolError("a message of " + std::to_string(message.size()) + " bytes; 1 to " +
                        std::to_string(kMostMessageBytes) + " are allowed");
  }
  std::string sealed = PacketWriter().number(message.size()).bytes().substr(0, kLengthBytes);
  sealed.append(message);
  sealed.append(bytes_of(seal_of(key_, number_++, message)));
  return sealed;
}

std::optional<std::string> MessageOpener::next() {
  if (bytes_.size() < kLengthBytes) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    size |= std::size_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
  }
  if (size == 0 || size > kMostMessageBytes) throw ProtocolError("a message with a length that is not allowed");
  if (bytes_.size() < kLengthBytes + size + sizeof(Key)) return std::nullopt;
  std::string message = bytes_.substr(kLengthBytes, size);
  const auto seal = key_from_bytes(std::string_view(bytes_).substr(kLengthBytes + size, sizeof(Key)));
  if (!seal || !is_equal(*seal, seal_of(key_, number_++, message))) {
    throw ProtocolError("a message whose hash does not match");
  }
  bytes_.erase(0, kLengthBytes + size + sizeof(Key));
  return message;
}

Loss MessageLine::flush() {
  while (!unsent_.empty()) {
    const ssize_t count = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (count > 0) {
      unsent_.erase(0, static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      return Loss::kNone;
    } else if (count == 0 || errno != EINTR) {
      unsent_.clear();
      return loss_of(errno);
    }
  }
  return Loss::kNone;
}

Loss MessageLine::receive() {
  std::array<char, 16384> buffer;
  // At most a few messages at a time: one peer does not keep the others waiting.
  for (std::size_t total = 0; total < 2 * kMostMessageBytes;) {
    const ssize_t count = recv(fd(), buffer.data(), buffer.size(), 0);
    if (count > 0) {
      opener_.add({buffer.data(), static_cast<std::size_t>(count)});
      total += static_cast<std::size_t>(count);
    } else if (count == 0) {
      return Loss::kEnded;
    } else if (errno == EAGAIN) {
      return Loss::kNone;
    } else if (errno != EINTR) {
      return loss_of(errno);
    }
  }
  return Loss::kNone;
}

void watch_connection(int fd, std::chrono::milliseconds silence) {
  const auto set = [fd](int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); };
  constexpr int kMostProbes = 127;
  const int num_probes = std::clamp(static_cast<int>(silence.count() / 1000) - 1, 1, kMostProbes);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, num_probes);
  // Half a second less: the kernel looks only when it sends the next probe.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::max<std::int64_t>(500, silence.count() - 500)));
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace tessera
