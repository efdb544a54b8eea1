#include "launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace tessera {

SignalInbox::SignalInbox(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  for (int signal : signals) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, &former_);
  fd_ = Fd(signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw Error(std::string("cannot make a signalfd: ") + std::strerror(errno));
}

std::optional<int> SignalInbox::next() {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void SignalInbox::restore_mask() const {
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

void SignalInbox::block() const {
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

}  // namespace tessera
