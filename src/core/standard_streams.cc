#include "core/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace tessera {

void open_missing_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open() takes the lowest free number: this one, since those below it are open. Children inherit it, as they
    // should.
    if (open("/dev/null", O_RDWR) < 0) return;
  }
}

}  // namespace tessera
