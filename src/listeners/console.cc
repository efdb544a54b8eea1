#include "listeners/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/log.h"
#include "core/output.h"

namespace tessera {

namespace {

constexpr std::string_view kClearLine = "\r\x1b[2K";
constexpr int kUsualColumns = 80;

int columns_of_terminal(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

// Progress that cannot be shown is not an error.
void write_to_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

Console::Console(Write out, Write progress, int num_columns)
    : out_(std::move(out)), progress_(std::move(progress)), num_columns_(num_columns) {}

Console Console::of_process() {
  return Console([](std::string_view text) { print_out(text); }, write_to_error, columns_of_terminal(STDERR_FILENO));
}

void Console::print_line(std::string_view line) {
  const std::string bar = shown_;
  clear_progress();
  try {
    out_(std::string(line) + "\n");
  } catch (const OutputError& error) {
    if (failure_.empty()) log_warn("{} (the run continues without these lines)", error.what());
    failure_ = error.what();
  }
  if (!bar.empty()) show_progress(bar);
}

void Console::show_progress(const std::string& text) {
  if (!is_terminal()) {
    progress_(text + "\n");
    return;
  }
  progress_(std::string(kClearLine) + text);
  shown_ = text;
}

void Console::keep_progress() {
  if (shown_.empty()) return;
  progress_("\n");
  shown_.clear();
}

void Console::clear_progress() {
  if (shown_.empty()) return;
  progress_(kClearLine);
  shown_.clear();
}

}  // namespace tessera
