#include "monitor/cpu_memory_log.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "monitor/log_lines.h"

namespace tessera {
namespace {

// psrecord centres the words in twelve columns and writes '# ' before the first.
constexpr const char* kPlainHeader = "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)";
constexpr const char* kCsvHeader = "elapsed_time,nproc,cpu,mem_real,mem_virtual";
constexpr const char* kCgroupHeader = "# Elapsed time  Used (MB)  ";

// With --include-io more columns follow.
bool is_plain_header(const std::string& line) {
  return line.starts_with('#') && line.find("Real (MB)") != std::string::npos;
}
bool is_csv_header(const std::string& line) {
  return line.starts_with(kCsvHeader);
}
bool is_cgroup_header(const std::string& line) {
  return line.starts_with('#') && line.find("Used (MB)") != std::string::npos;
}

// The numbers of a row, or nothing if a cell is none.
std::optional<std::vector<double>> numbers_of(const std::string& line, char separator) {
  std::vector<double> numbers;
  for (const std::string& cell : split(line, separator)) {
    if (separator == ' ' && cell.empty()) continue;
    const auto number = parse_real(trim(cell));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<CpuMemorySample> parse_cpu_row(const std::string& line, bool is_csv) {
  const auto numbers = numbers_of(line, is_csv ? ',' : ' ');
  const std::size_t num_wanted = is_csv ? 5 : 4;
  if (!numbers || (numbers->size() != num_wanted && numbers->size() != num_wanted + 4)) return std::nullopt;
  const std::size_t cpu = num_wanted - 3;  // csv has the number of processes before it
  if ((*numbers)[cpu + 1] < 0 || (*numbers)[cpu + 2] < 0) return std::nullopt;
  return CpuMemorySample{numbers->front(), (*numbers)[cpu], (*numbers)[cpu + 1], (*numbers)[cpu + 2]};
}

[[noreturn]] void refuse_log(const std::string& origin, const char* what, const char* header, const std::string& by,
                             std::string_view text, const std::vector<std::string>& lines) {
  throw UsageError(fmt::format("{}: not a {} memory log: expected '{}' as its first line, as {} writes it, found '{}'",
                               origin, what, trim(header), by, printable(lines.empty() ? text : lines.front(), 80)));
}

}  // namespace

std::string cpu_memory_log_header() {
  return fmt::format("{}\n", kPlainHeader);
}

std::string cpu_memory_log_row(const CpuMemorySample& s) {
  return fmt::format("{:12.3f} {:12.3f} {:12.3f} {:12.3f}\n", s.elapsed_seconds, s.cpu_percent, s.real_MB,
                     s.virtual_MB);
}

std::string cgroup_memory_log_header() {
  return fmt::format("{}\n", kCgroupHeader);
}

std::string cgroup_memory_log_row(const CgroupMemorySample& s) {
  return fmt::format("{:12.3f} {:12.3f}\n", s.elapsed_seconds, s.used_MB);
}

bool is_cpu_memory_log(std::string_view text) {
  const std::vector<std::string> lines = whole_lines(text);
  return !lines.empty() && (is_plain_header(lines.front()) || is_csv_header(lines.front()));
}

bool is_cgroup_memory_log(std::string_view text) {
  const std::vector<std::string> lines = whole_lines(text);
  return !lines.empty() && is_cgroup_header(lines.front());
}

CpuMemoryLog parse_cpu_memory_log(std::string_view text, const std::string& origin) {
  CpuMemoryLog log;
  const std::vector<std::string> lines = whole_lines(text);
  if (trim(text).empty()) return log;  // its writer was ended before the header
  if (!is_cpu_memory_log(text)) refuse_log(origin, "CPU", kPlainHeader, "psrecord --log", text, lines);
  bool is_csv = false;
  for (const std::string& line : lines) {
    if (is_plain_header(line) || is_csv_header(line)) {
      is_csv = is_csv_header(line);
    } else if (const auto sample = parse_cpu_row(line, is_csv)) {
      log.samples.push_back(*sample);
    } else {
      ++log.num_unreadable;
    }
  }
  return log;
}

CpuMemoryLog read_cpu_memory_log(const std::filesystem::path& path) {
  return parse_cpu_memory_log(read_file(path), path.string());
}

CgroupMemoryLog parse_cgroup_memory_log(std::string_view text, const std::string& origin) {
  CgroupMemoryLog log;
  const std::vector<std::string> lines = whole_lines(text);
  if (trim(text).empty()) return log;
  if (!is_cgroup_memory_log(text)) refuse_log(origin, "cgroup", kCgroupHeader, "tessera", text, lines);
  for (const std::string& line : lines) {
    const auto numbers = numbers_of(line, ' ');
    if (numbers && numbers->size() == 2 && numbers->back() >= 0) {
      log.samples.push_back({numbers->front(), numbers->back()});
    } else if (!is_cgroup_header(line)) {
      ++log.num_unreadable;
    }
  }
  return log;
}

CgroupMemoryLog read_cgroup_memory_log(const std::filesystem::path& path) {
  return parse_cgroup_memory_log(read_file(path), path.string());
}

}  // namespace tessera
