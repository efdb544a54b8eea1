// Leveled log lines on standard error: "12:34:56.789 rank 0 info  message".
//
// TESSERA_LOG says what is shown: a level (debug, info, warn, error), then optionally the ranks: 'info' (rank 0 alone),
// 'debug,all', 'info,0-3', 'info,0,4-7'; empty is 'info'. Errors are shown from every rank. Safe from any thread; one
// write a line, so that the lines of several ranks do not mix. A rank may have a file of its own, which gets its lines
// whatever ranks are shown.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Called once, early, and again when the rank is known; `spec` is TESSERA_LOG's form. Throws UsageError if it is not.
// Rank -1: none (yet), the lines name no rank and are shown whatever ranks the spec chooses.
void configure_log(std::string_view spec, int rank);
// What configure_log() would throw, as text; empty where the spec is right.
std::string log_spec_mistake(std::string_view spec);
bool log_enabled(LogLevel level);
void write_log(LogLevel level, std::string_view message);

// Lines from the level of configure_log() on go to the end of this file, too; once a process. Throws UsageError with
// the system's reason. A file that cannot be written later is told of once.
void open_log_file(const std::filesystem::path& path);
// A line for the file alone: what is shown elsewhere already.
void write_log_file(std::string_view message);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) write_log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) write_log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kWarn)) write_log(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tessera
