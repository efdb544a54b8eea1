#include "comm/meeting/wake_up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace tessera {

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

}  // namespace tessera
