#include "core/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::array kLevelNames = {"debug", "info", "warn", "error"};

// Plain numbers, so that checks and writes need no lock. A line that is written while the log is configured may carry
// the old rank; nothing else can go wrong.
std::atomic<LogLevel> lowest_shown = LogLevel::kInfo;
std::atomic<LogLevel> lowest_in_file = LogLevel::kInfo;
std::atomic<int> own_rank = -1;
std::atomic<int> own_file = -1;  // of open_log_file(); -1: none, or given up

[[noreturn]] void refuse_spec(std::string_view spec) {
  throw UsageError(fmt::format(
      "TESSERA_LOG={}: expected debug, info, warn or error, then optionally ranks: 'info', 'debug,all', 'info,0-3'",
      spec));
}

std::optional<LogLevel> level_named(std::string_view name) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (name == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

// Whether 'all', '3' or '0-3' names the rank. A process without a rank (a launcher, a command of one process) is shown.
bool selects(std::string_view ranks, int rank, std::string_view spec) {
  if (ranks == "all") return true;
  const std::size_t hyphen = ranks.find('-');
  const std::optional<long long> low = parse_integer(ranks.substr(0, hyphen));
  const std::optional<long long> high =
      hyphen == std::string_view::npos ? low : parse_integer(ranks.substr(hyphen + 1));
  if (!low || !high || *low < 0 || *high < *low) refuse_spec(spec);
  return rank < 0 || (*low <= rank && rank <= *high);
}

struct Levels {
  LogLevel chosen, shown;  // chosen by the spec; shown on this rank
};

Levels levels_of(std::string_view spec, int rank) {
  const std::vector<std::string> parts = split(spec.empty() ? "info" : lower_case(spec), ',');
  const std::optional<LogLevel> level = level_named(trim(parts[0]));
  if (!level) refuse_spec(spec);
  bool selected = parts.size() == 1 && rank <= 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (selects(trim(parts[i]), rank, spec)) selected = true;
  }
  return {*level, selected ? *level : LogLevel::kError};
}

std::string shown_name(LogLevel level) {
  const std::string name = fmt::format("{:<5}", kLevelNames[static_cast<std::size_t>(level)]);
  if (level < LogLevel::kWarn) return name;
  return coloured(name, level == LogLevel::kWarn ? Colour::kYellow : Colour::kRed);
}

std::string format_line(std::string_view level, std::string_view message) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  const int rank = own_rank;
  const std::string who = rank < 0 ? "" : fmt::format("rank {} ", rank);
  const std::string_view end = message.ends_with('\n') ? "" : "\n";
  return fmt::format("{:%H:%M:%S}.{:03} {}{:<5} {}{}", local, ms, who, level, message, end);
}

// The bar of progress, and the order of what threads write around it. Without a bar no line waits.
std::mutex bar_lock;
std::string bar;
std::atomic<bool> has_bar = false;

// Another process may have made the shared terminal or pipe non-blocking. Wait for its reader, but do not let it stop a
// run.
void write_patiently(std::string_view text) {
  constexpr int kPatienceMs = 1000;
  write_all(STDERR_FILENO, text, kPatienceMs);
}

void write_to_stderr(std::string_view line) {
  if (!has_bar.load(std::memory_order_relaxed)) return write_patiently(line);
  const std::lock_guard lock(bar_lock);
  write_patiently(fmt::format("{}{}{}", kClearLine, line, bar));
}

// A full disk must not end a run: warn once and give up the file.
void append_to_file(std::string_view line) {
  const int file = own_file;
  if (file < 0 || write_all(file, line)) return;
  const std::string why = std::strerror(errno);
  if (own_file.exchange(-1) != file) return;
  write_to_stderr(
      format_line(shown_name(LogLevel::kWarn), "cannot write to this rank's log file; it gets no more lines: " + why));
}

}  // namespace

void configure_log(std::string_view spec, int rank) {
  const Levels levels = levels_of(spec, rank);
  own_rank = rank;
  lowest_shown = levels.shown;
  lowest_in_file = levels.chosen;
}

void open_log_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const int file = error ? -1 : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) {
    throw UsageError(
        fmt::format("cannot write the log {}: {}", path.string(), error ? error.message() : std::strerror(errno)));
  }
  own_file = file;
}

std::string log_spec_mistake(std::string_view spec) {
  try {
    levels_of(spec, -1);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

bool log_enabled(LogLevel level) {
  return level >= lowest_shown.load(std::memory_order_relaxed) ||
         (own_file.load(std::memory_order_relaxed) >= 0 && level >= lowest_in_file.load(std::memory_order_relaxed));
}

void write_log(LogLevel level, std::string_view message) {
  const int caller_errno = errno;  // a log line between a failed call and the check of errno must not change it
  // log_error() does not ask log_enabled() first.
  if (level >= lowest_shown.load(std::memory_order_relaxed)) write_to_stderr(format_line(shown_name(level), message));
  if (level >= lowest_in_file.load(std::memory_order_relaxed)) {
    append_to_file(format_line(kLevelNames[static_cast<std::size_t>(level)], message));
  }
  errno = caller_errno;
}

void write_progress(std::string_view text, std::string_view standing) {
  const std::lock_guard lock(bar_lock);
  bar = standing;
  has_bar = !standing.empty();
  write_patiently(text);
}

void write_log_file(std::string_view message) {
  const int caller_errno = errno;
  append_to_file(format_line(kLevelNames[static_cast<std::size_t>(LogLevel::kInfo)], message));
  errno = caller_errno;
}

}  // namespace tessera
