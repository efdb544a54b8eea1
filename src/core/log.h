// Leveled log lines on standard error: "12:34:56.789 rank 0 info  message".
//
// TESSERA_LOG says what is shown: a level (debug, info, warn, error), then optionally the ranks: 'info' (rank 0 alone),
// 'debug,all', 'info,0-3', 'info,0,4-7'; empty is 'info'. Errors are shown from every rank. Safe from any thread; one
// write per line, so that the lines of several ranks do not mix. A rank may have a log file of its own, which gets its
// lines whichever ranks are shown.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Called once, early, and again when the rank is known; `spec` has the form of TESSERA_LOG. Throws UsageError if it
// does not. Rank -1: none (yet); the lines name no rank and are shown whichever ranks the spec selects.
void configure_log(std::string_view spec, int rank);
// What configure_log() would throw, as text; empty if the spec is valid.
std::string log_spec_mistake(std::string_view spec);
bool log_enabled(LogLevel level);
void write_log(LogLevel level, std::string_view message);

// From now on, lines of configure_log()'s level and above are also appended to this file; call once per process. Throws
// UsageError with the system's reason. If a later write fails, one warning says so.
void open_log_file(const std::filesystem::path& path);
// A line for the file alone: one that is already shown elsewhere.
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
