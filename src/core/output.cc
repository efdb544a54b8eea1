#include "core/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
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

}  // namespace tessera
