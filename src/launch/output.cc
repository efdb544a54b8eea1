#include "launch/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;  // a longer line is passed on in pieces

}  // namespace

void LinePrefixer::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (end == std::string_view::npos && line_.size() < kLongestLine) return;
    emit_line();
  }
}

void LinePrefixer::finish() {
  if (!line_.empty()) emit_line();
}

void LinePrefixer::emit_line() {
  emit_(prefix_ + line_ + "\n");
  line_.clear();
}

RankOutput::RankOutput(Choice choice, std::array<Fd, 2> console)
    : choice_(std::move(choice)), console_(std::move(console)) {
  if (!choice_.log_file.empty()) {
    log_ = Fd(open(choice_.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log_) throw Error("cannot write the log " + choice_.log_file + ": " + std::strerror(errno));
  }
  // Output goes through the runner only if it must: a rank that writes directly to a terminal sees a terminal.
  const bool between = choice_.show && (log_ || !choice_.prefix.empty());
  for (std::size_t stream = 0; between && stream < 2; ++stream) {
    Pipe pipe;
    fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
    read_ends_[stream] = std::move(pipe.read_end);
    rank_ends_[stream] = std::move(pipe.write_end);
    prefixers_.emplace_back(choice_.prefix, [this, stream](std::string_view line) { show(stream, line); });
  }
}

void RankOutput::attach() const {
  for (std::size_t stream = 0; stream < 2; ++stream) {
    int target = log_.get();
    if (choice_.show) target = rank_ends_[stream] ? rank_ends_[stream].get() : console_[stream].get();
    dup2(target, static_cast<int>(stream) + STDOUT_FILENO);
  }
}

void RankOutput::close_rank_ends() {
  for (Fd& end : rank_ends_) end.reset();
}

std::vector<int> RankOutput::watched_fds() const {
  std::vector<int> fds;
  for (const Fd& end : read_ends_) {
    if (end) fds.push_back(end.get());
  }
  return fds;
}

void RankOutput::pump() {
  for (std::size_t stream = 0; stream < 2; ++stream) {
    if (read_ends_[stream]) pump(stream);
  }
}

void RankOutput::drain() {
  for (std::size_t stream = 0; stream < 2; ++stream) {
    while (read_ends_[stream] && pump(stream)) {
    }
    read_ends_[stream].reset();
    if (stream < prefixers_.size()) prefixers_[stream].finish();
  }
}

// True if there was something, so that there may be more.
bool RankOutput::pump(std::size_t stream) {
  std::array<char, 16384> buffer;
  const ssize_t count = read(read_ends_[stream].get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (count <= 0) {
    read_ends_[stream].reset();
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  if (log_ && !write_all(log_.get(), bytes)) log_.reset();  // a full disk must not stop the run
  if (choice_.prefix.empty()) {
    show(stream, bytes);
  } else {
    prefixers_[stream].add(bytes);
  }
  return true;
}

void RankOutput::show(std::size_t stream, std::string_view bytes) {
  if (console_[stream] && !write_all(console_[stream].get(), bytes)) console_[stream].reset();
}

void say_line(const std::string& line) {
  const std::string text = line + "\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace tessera
