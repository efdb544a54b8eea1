#include "monitor/gpu_memory_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "monitor/log_lines.h"

namespace tessera {
namespace {

constexpr const char* kHeader = "timestamp, index, name, memory.used [MiB], memory.total [MiB]";

using Columns = std::map<std::string, std::size_t>;  // place of each name, without its unit

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (const std::string& cell : split(line, ',')) cells.emplace_back(trim(cell));
  return cells;
}

// Nothing if the line is no header with the columns that matter.
std::optional<Columns> columns_of(const std::string& line) {
  Columns columns;
  const std::vector<std::string> cells = cells_of(line);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    columns.emplace(std::string(trim(std::string_view(cells[i]).substr(0, cells[i].find('[')))), i);
  }
  if (!columns.contains("index") || !columns.contains("memory.used")) return std::nullopt;
  return columns;
}

// "2025/01/31 12:00:00.123"
std::optional<double> parse_timestamp(const std::string& text) {
  std::tm time{};
  int milliseconds = 0, end = 0;
  const int found = std::sscanf(text.c_str(), "%4d/%2d/%2d %2d:%2d:%2d.%3d%n", &time.tm_year, &time.tm_mon,
                                &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &milliseconds, &end);
  if (found != 7 || end != static_cast<int>(text.size())) return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(timegm(&time)) + milliseconds / 1000.0;
}

// "26532" or "26532 MiB"; none for [N/A], [Not Supported], [Unknown Error] and the like.
struct MemoryCell {
  bool is_readable = false;
  std::optional<double> value_MiB;
};

MemoryCell parse_memory(std::string_view cell) {
  if (cell.starts_with('[') && cell.ends_with(']')) return {true, std::nullopt};
  if (cell.ends_with("MiB")) cell = trim(cell.substr(0, cell.size() - 3));
  const auto value = parse_real(cell);
  return {value && *value >= 0, value};
}

std::optional<GpuMemorySample> parse_row(const std::string& line, const Columns& columns) {
  const std::vector<std::string> cells = cells_of(line);
  if (cells.size() != columns.size()) return std::nullopt;
  const auto cell = [&](const char* name) -> const std::string* {
    const auto found = columns.find(name);
    return found == columns.end() ? nullptr : &cells[found->second];
  };
  GpuMemorySample sample;
  const auto index = parse_integer(*cell("index"));
  const MemoryCell used = parse_memory(*cell("memory.used"));
  if (!index || *index < 0 || *index > 9999 || !used.is_readable) return std::nullopt;
  sample.index = static_cast<int>(*index);
  sample.used_MiB = used.value_MiB;
  if (const std::string* total = cell("memory.total")) {
    const MemoryCell read = parse_memory(*total);
    if (!read.is_readable) return std::nullopt;
    sample.total_MiB = read.value_MiB;
  }
  if (const std::string* name = cell("name")) sample.name = *name;
  if (const std::string* timestamp = cell("timestamp")) {
    const auto seconds = parse_timestamp(*timestamp);
    if (!seconds) return std::nullopt;
    sample.seconds = *seconds;
  }
  return sample;
}

// Of the file's first line: a header, or with --format=csv,noheader a row of the five columns in their order.
std::optional<Columns> first_columns(const std::string& line) {
  if (const auto columns = columns_of(line)) return columns;
  const std::optional<Columns> usual = columns_of(kHeader);
  return parse_row(line, *usual) ? usual : std::nullopt;
}

std::string memory_cell(const std::optional<double>& value_MiB) {
  return value_MiB ? fmt::format("{:.0f}", *value_MiB) : "[N/A]";
}

}  // namespace

std::string gpu_memory_log_header() {
  return fmt::format("{}\n", kHeader);
}

std::string gpu_memory_log_row(std::chrono::system_clock::time_point time, const GpuMemorySample& sample) {
  const auto since_1970 = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_1970);
  return fmt::format("{:%Y/%m/%d %H:%M:%S}.{:03d}, {}, {}, {}, {}\n", fmt::localtime(seconds.count()),
                     (since_1970 - seconds).count(), sample.index, sample.name, memory_cell(sample.used_MiB),
                     memory_cell(sample.total_MiB));
}

bool is_gpu_memory_log(std::string_view text) {
  const std::vector<std::string> lines = whole_lines(text);
  return !lines.empty() && first_columns(lines.front());
}

GpuMemoryLog parse_gpu_memory_log(std::string_view text, const std::string& origin) {
  GpuMemoryLog log;
  const std::vector<std::string> lines = whole_lines(text);
  if (lines.empty() && trim(text).empty()) return log;  // its writer was ended before the header
  std::optional<Columns> columns = lines.empty() ? std::nullopt : first_columns(lines.front());
  if (!columns) {
    throw UsageError(
        fmt::format("{}: not a GPU memory log: expected '{}' as its first line, as nvidia-smi --query-gpu=... "
                    "--format=csv writes it, found '{}'",
                    origin, kHeader, printable(lines.empty() ? text : lines.front(), 80)));
  }
  for (const std::string& line : lines) {
    if (const auto header = columns_of(line)) {
      columns = header;
    } else if (auto sample = parse_row(line, *columns)) {
      log.samples.push_back(std::move(*sample));
    } else {
      ++log.num_unreadable;
    }
  }
  return log;
}

GpuMemoryLog read_gpu_memory_log(const std::filesystem::path& path) {
  return parse_gpu_memory_log(read_file(path), path.string());
}

}  // namespace tessera
