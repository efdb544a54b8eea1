#include "launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tessera {

namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

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
