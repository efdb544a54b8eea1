#include "results/bandwidth_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/file.h"
#include "core/text.h"
#include "record/find_runs.h"

namespace tessera {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words = split(line, ' ');
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

// size count type redop root, then time algbw busbw #wrong once or twice. Older nccl-tests print no root.
std::optional<BandwidthLog::Row> row_of(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() < 8 || !parse_real(words[0]) || !parse_real(words[1]) || parse_real(words[2])) return std::nullopt;
  BandwidthLog::Row row{*parse_real(words[0]), 0};
  for (const std::size_t from_end : {std::size_t{2}, std::size_t{6}}) {
    if (words.size() < 5 + from_end) break;
    if (const auto bandwidth = parse_real(words[words.size() - from_end])) {
      row.bus_GBps = std::max(row.bus_GBps, *bandwidth);
    }
  }
  if (row.bytes <= 0 || row.bus_GBps <= 0) return std::nullopt;  // a log axis has no zero
  return row;
}

// "# all_reduce: nRanks 8 ..." of comm-test, "# Collective test starting: all_reduce_perf" of nccl-tests.
std::string name_in(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() > 3 && words[0] == "#" && words[1].ends_with(':') && words[2] == "nRanks") {
    return fmt::format("{}, {} ranks", words[1].substr(0, words[1].size() - 1), words[3]);
  }
  const std::string starting = "# Collective test starting: ";
  return line.starts_with(starting) ? line.substr(starting.size()) : "";
}

}  // namespace

std::optional<BandwidthLog> parse_bandwidth_log(const std::string& text, const std::string& file_name) {
  BandwidthLog log;
  for (const std::string& line : split(text, '\n')) {
    if (log.name.empty()) log.name = name_in(line);
    if (const auto row = row_of(line)) log.rows.push_back(*row);
  }
  if (log.rows.empty()) return std::nullopt;
  log.name = log.name.empty() ? file_name : fmt::format("{} ({})", log.name, file_name);
  return log;
}

std::vector<BandwidthLog> find_bandwidth_logs(const std::vector<std::string>& places) {
  std::vector<BandwidthLog> logs;
  for (const std::filesystem::path& file : find_run_places(places).bandwidth_logs) {
    if (auto log = parse_bandwidth_log(read_file(file), file.filename().string())) logs.push_back(std::move(*log));
  }
  return logs;
}

}  // namespace tessera
