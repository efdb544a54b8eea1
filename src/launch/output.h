// Where the lines of one rank go: directly to the launcher's output, into a log file, or through the runner to both.
#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/wire.h"

namespace tessera {

// Cuts its input into lines and puts a prefix before each. Each line is passed on in one piece.
class LinePrefixer {
 public:
  using Emit = std::function<void(std::string_view line)>;
  LinePrefixer(std::string prefix, Emit emit) : prefix_(std::move(prefix)), emit_(std::move(emit)) {}

  void add(std::string_view bytes);
  void finish();  // a last line without a newline gets one

 private:
  void emit_line();

  std::string prefix_, line_;
  Emit emit_;
};

// Made before the rank is forked. In the rank: attach(). In the runner: close_rank_ends(), then pump() whenever one of
// watched_fds() can be read, and drain() when the rank has ended.
class RankOutput {
 public:
  struct Choice {
    std::string log_file;  // empty: none
    bool show = true;      // on the launcher's output
    std::string prefix;    // before each shown line; empty: bytes as they come
  };
  // `console` are the launcher's stdout and stderr. Throws Error if the log file cannot be opened.
  RankOutput(Choice choice, std::array<Fd, 2> console);

  void attach() const;
  void close_rank_ends();
  std::vector<int> watched_fds() const;
  void pump();
  // Reads what has been written, but does not wait for more: a grandchild may keep the pipe open forever.
  void drain();

 private:
  bool pump(std::size_t stream);
  void show(std::size_t stream, std::string_view bytes);

  Choice choice_;
  std::array<Fd, 2> console_, read_ends_, rank_ends_;  // stdout, stderr
  std::vector<LinePrefixer> prefixers_;
  Fd log_;
};

// The launcher's own lines, on standard error, one write each: "tessera launch: ...".

void say_line(const std::string& line);  // as it is, without the launcher's name

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_line("tessera launch: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tessera
