#include "launch/wire.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

constexpr std::size_t kMostBytes = 16384;  // packets are a few hundred bytes; writers cut long texts

// What sendmsg() and recvmsg() take: a text, with room for two descriptors.
struct Message {
  explicit Message(std::string& text) : part{text.data(), text.size()} {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = control.size();
  }
  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr head{};
};

[[noreturn]] void fail(const std::string& what) {
  throw Error(what + ": " + std::strerror(errno));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Error("the path of the launcher's socket is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Fd make_socket(int flags) {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd) fail("cannot make a Unix socket");
  return fd;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

pid_t Line::peer() const {
  ucred other{};
  socklen_t length = sizeof other;
  return getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 ? other.pid : -1;
}

void Line::send(const Json& packet, std::initializer_list<int> fds) const {
  std::string text = json_text(packet);
  Message message(text);
  message.head.msg_controllen = fds.size() == 0 ? 0 : message.head.msg_controllen;
  if (cmsghdr* header = CMSG_FIRSTHDR(&message.head); header != nullptr) {
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.begin(), fds.size() * sizeof(int));
  }
  (void)sendmsg(fd_.get(), &message.head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Line::Got Line::receive(Json* packet, std::array<Fd, 2>* fds) const {
  std::string text(kMostBytes, '\0');
  Message message(text);
  const ssize_t count = recvmsg(fd_.get(), &message.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Got::kNothingYet;
  if (count <= 0) return Got::kEnd;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message.head); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::array<int, 2> numbers{-1, -1};
    std::memcpy(numbers.data(), CMSG_DATA(header), sizeof numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      Fd fd(numbers[i]);
      if (fds != nullptr) (*fds)[i] = std::move(fd);
    }
  }
  text.resize(static_cast<std::size_t>(count));
  *packet = parse_json(text, "the line between launcher and minder");
  return Got::kPacket;
}

Fd listen_at(const std::string& path) {
  Fd fd = make_socket(SOCK_NONBLOCK);
  const sockaddr_un address = address_of(path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("cannot bind " + path);
  if (listen(fd.get(), SOMAXCONN) != 0) fail("cannot listen at " + path);
  return fd;
}

std::optional<Line> accept_line(const Fd& listener) {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return std::nullopt;
  return Line(std::move(fd));
}

Line connect_to(const std::string& path) {
  Fd fd = make_socket(0);
  const sockaddr_un address = address_of(path);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot reach the launcher at " + path);
  }
  return Line(std::move(fd));
}

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

SignalInbox::SignalInbox(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  for (int signal : signals) {
    if (signal == SIGCHLD) std::signal(SIGCHLD, SIG_DFL);
    // A blocked signal is queued even when it is ignored.
    if (!is_ignored(signal)) sigaddset(&set_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set_, &former_);
  fd_ = Fd(signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw Error(std::string("cannot make a signalfd: ") + std::strerror(errno));
}

std::optional<int> SignalInbox::next() {
  const auto received = next_received();
  return received ? std::optional(received->signal) : std::nullopt;
}

std::optional<SignalInbox::Received> SignalInbox::next_received() {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return Received{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

void SignalInbox::restore_mask() const {
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

}  // namespace tessera
