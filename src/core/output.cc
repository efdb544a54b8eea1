#include "core/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace tessera {

void print_out(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  const std::string reason = errno == 0 ? "unknown error" : std::strerror(errno);
  std::clearerr(stdout);
  throw OutputError(fmt::format("cannot write to standard output: {}", reason));
}

std::string coloured(std::string_view text, Colour colour) {
  static const bool shows_colours = [] {
    const char *const no_colour = std::getenv("NO_COLOR"), *const terminal = std::getenv("TERM");
    const bool is_unwanted = no_colour != nullptr && *no_colour != 0;
    return ::isatty(STDERR_FILENO) == 1 && !is_unwanted &&
           (terminal == nullptr || std::string_view(terminal) != "dumb");
  }();
  return shows_colours ? fmt::format("\x1b[{}m{}\x1b[0m", static_cast<int>(colour), text) : std::string(text);
}

void open_missing_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open() takes the lowest free number: this one, since those below it are open. Children inherit it, as they
    // should.
    if (open("/dev/null", O_RDWR) < 0) return;
  }
}

void survive_closed_pipes() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;  // whoever started us chose
  action.sa_handler = [](int) {};  // unlike SIG_IGN, exec resets it
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace tessera
