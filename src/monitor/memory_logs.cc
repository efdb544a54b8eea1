#include "monitor/memory_logs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Without line ends (\n or \r\n) and empty lines. A last line without its end is left out: its writer was killed while
// it wrote, or still writes, and a number may be cut.
std::vector<std::string> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  const std::size_t end = text.rfind('\n');
  if (end == std::string_view::npos) return lines;
  for (std::string& line : split(text.substr(0, end), '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    if (!trim(line).empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// The first whole line that is not blank; "": there is none.
std::string first_line(std::string_view text) {
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    const std::string_view line = text.substr(0, end);
    if (!trim(line).empty()) return std::string(line.substr(0, line.size() - line.ends_with('\r')));
    text.remove_prefix(end + 1);
  }
}

std::vector<fs::path> files_like(const fs::path& folder, const std::string& begin, const std::string& end) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), last; !error && entry != last; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(begin) && name.ends_with(end) && !entry->is_directory(ignored)) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

constexpr const char* kCsvHeader = "elapsed_time,nproc,cpu,mem_real,mem_virtual";

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

// What a message says of a file that is no such log.
struct LogForm {
  const char *what, *header, *writer;
};

// Line by line: `take_header` says whether a line is one, `parse_row` gives its sample, or nothing.
template <typename Sample, typename TakeHeader, typename ParseRow>
MemoryLog<Sample> parse_log(std::string_view text, const std::string& origin, bool is_log, const LogForm& form,
                            const TakeHeader& take_header, const ParseRow& parse_row) {
  MemoryLog<Sample> log;
  if (trim(text).empty()) return log;  // its writer was ended before the header
  const std::vector<std::string> lines = whole_lines(text);
  if (!is_log) {
    throw UsageError(
        fmt::format("{}: not a {} memory log: expected '{}' as its first line, as {} writes it, found '{}'", origin,
                    form.what, trim(form.header), form.writer, printable(lines.empty() ? text : lines.front(), 80)));
  }
  for (const std::string& line : lines) {
    if (take_header(line)) continue;
    if (std::optional<Sample> sample = parse_row(line)) {
      log.samples.push_back(std::move(*sample));
    } else {
      ++log.num_unreadable;
    }
  }
  return log;
}

using Columns = std::map<std::string, std::size_t>;  // place of each name, without its unit

std::vector<std::string> cells_of(const std::string& line) {
  return texts_of(split(line, ','), trim);
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

// "26532" or "26532 MiB"; no value for [N/A], [Not Supported], [Unknown Error] and the like. False: it is neither.
bool parse_memory(std::string_view cell, std::optional<double>& value_MiB) {
  if (cell.starts_with('[') && cell.ends_with(']')) return true;
  if (cell.ends_with("MiB")) cell = trim(cell.substr(0, cell.size() - 3));
  value_MiB = parse_real(cell);
  return value_MiB && *value_MiB >= 0;
}

std::optional<GpuMemorySample> parse_gpu_row(const std::string& line, const Columns& columns) {
  const std::vector<std::string> cells = cells_of(line);
  if (cells.size() != columns.size()) return std::nullopt;
  const auto cell = [&](const char* name) -> const std::string* {
    const auto found = columns.find(name);
    return found == columns.end() ? nullptr : &cells[found->second];
  };
  GpuMemorySample sample;
  const auto index = parse_integer(*cell("index"));
  if (!index || *index < 0 || *index > 9999) return std::nullopt;
  sample.index = static_cast<int>(*index);
  if (!parse_memory(*cell("memory.used"), sample.used_MiB)) return std::nullopt;
  const std::string* total = cell("memory.total");
  if (total != nullptr && !parse_memory(*total, sample.total_MiB)) return std::nullopt;
  if (const std::string* name = cell("name")) sample.name = *name;
  if (const std::string* timestamp = cell("timestamp")) {
    const auto seconds = parse_timestamp(*timestamp);
    if (!seconds) return std::nullopt;
    sample.seconds = *seconds;
  }
  return sample;
}

// Of a file without a header: with --format=csv,noheader its rows have the five columns in their order.
Columns usual_columns() {
  return *columns_of(kGpuMemoryLogHeader);
}

std::string memory_cell(const std::optional<double>& value_MiB) {
  return value_MiB ? fmt::format("{:.0f}", *value_MiB) : "[N/A]";
}

}  // namespace

fs::path gpu_memory_folder(const fs::path& folder, const std::string& job) {
  return folder / "gpu_memory" / job;
}

fs::path cpu_memory_folder(const fs::path& folder, const std::string& job) {
  return folder / "cpu_memory" / job;
}

MemoryLogs memory_logs_of_host(const fs::path& folder, const std::string& job, const std::string& host) {
  const std::string end = host.empty() ? "" : "_" + host;
  const fs::path cpu = cpu_memory_folder(folder, job);
  return {{gpu_memory_folder(folder, job) / fmt::format("gpu_memory_log{}.csv", end)},
          {cpu / fmt::format("cpu_memory_log{}.txt", end)},
          {cpu / fmt::format("cgroup_memory_log{}.txt", end)}};
}

MemoryLogs find_memory_logs(const fs::path& folder, const std::string& job) {
  const fs::path cpu = cpu_memory_folder(folder, job);
  return {files_like(gpu_memory_folder(folder, job), "", ".csv"), files_like(cpu, "cpu_memory_log", ".txt"),
          files_like(cpu, "cgroup_memory_log", ".txt")};
}

std::string new_memory_job(const fs::path& folder, const Environment& environment) {
  if (const auto slurm = environment.find("SLURM_JOB_ID")) return job_as_folder_name(*slurm);
  const std::string now = fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  std::string job = now;
  for (int number = 2; is_there(cpu_memory_folder(folder, job)); ++number) {
    job = fmt::format("{}-{}", now, number);
  }
  return job;
}

std::string job_as_folder_name(std::string job) {
  const auto is_unfit = [](unsigned char letter) { return letter == '/' || letter < ' ' || letter == 0x7f; };
  std::ranges::replace_if(job, is_unfit, '_');
  return job.empty() || job == "." || job == ".." ? "_" : job;
}

std::string host_in_log_names(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) {
    if (const auto count = environment.find(name)) return *count == "1" ? "" : host_name();
  }
  const auto world = environment.find("OMPI_COMM_WORLD_SIZE"), local = environment.find("OMPI_COMM_WORLD_LOCAL_SIZE");
  return world && local && *world != *local ? host_name() : "";
}

std::string cpu_memory_log_row(const CpuMemorySample& s) {
  return fmt::format("{:12.3f} {:12.3f} {:12.3f} {:12.3f}\n", s.elapsed_seconds, s.cpu_percent, s.real_MB,
                     s.virtual_MB);
}

std::string cgroup_memory_log_row(const CgroupMemorySample& s) {
  return fmt::format("{:12.3f} {:12.3f}\n", s.elapsed_seconds, s.used_MB);
}

bool is_cpu_memory_log(std::string_view text) {
  const std::string line = first_line(text);
  return is_plain_header(line) || is_csv_header(line);
}

bool is_cgroup_memory_log(std::string_view text) {
  return is_cgroup_header(first_line(text));
}

CpuMemoryLog parse_cpu_memory_log(std::string_view text, const std::string& origin) {
  bool is_csv = false;
  const auto take_header = [&](const std::string& line) {
    const bool is_header = is_plain_header(line) || is_csv_header(line);
    if (is_header) is_csv = is_csv_header(line);
    return is_header;
  };
  return parse_log<CpuMemorySample>(text, origin, is_cpu_memory_log(text),
                                    {"CPU", kCpuMemoryLogHeader, "psrecord --log"}, take_header,
                                    [&](const std::string& line) { return parse_cpu_row(line, is_csv); });
}

CpuMemoryLog read_cpu_memory_log(const std::filesystem::path& path) {
  return parse_cpu_memory_log(read_file(path), path.string());
}

CgroupMemoryLog parse_cgroup_memory_log(std::string_view text, const std::string& origin) {
  const auto parse_row = [](const std::string& line) -> std::optional<CgroupMemorySample> {
    const auto numbers = numbers_of(line, ' ');
    if (!numbers || numbers->size() != 2 || numbers->back() < 0) return std::nullopt;
    return CgroupMemorySample{numbers->front(), numbers->back()};
  };
  return parse_log<CgroupMemorySample>(text, origin, is_cgroup_memory_log(text),
                                       {"cgroup", kCgroupMemoryLogHeader, "tessera"}, is_cgroup_header, parse_row);
}

CgroupMemoryLog read_cgroup_memory_log(const std::filesystem::path& path) {
  return parse_cgroup_memory_log(read_file(path), path.string());
}

std::string gpu_memory_log_row(std::chrono::system_clock::time_point time, const GpuMemorySample& sample) {
  const auto since_1970 = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_1970);
  return fmt::format("{:%Y/%m/%d %H:%M:%S}.{:03d}, {}, {}, {}, {}\n", fmt::localtime(seconds.count()),
                     (since_1970 - seconds).count(), sample.index, sample.name, memory_cell(sample.used_MiB),
                     memory_cell(sample.total_MiB));
}

bool is_gpu_memory_log(std::string_view text) {
  const std::string line = first_line(text);
  return columns_of(line) || parse_gpu_row(line, usual_columns());
}

GpuMemoryLog parse_gpu_memory_log(std::string_view text, const std::string& origin) {
  Columns columns = usual_columns();
  const auto take_header = [&](const std::string& line) {
    const std::optional<Columns> header = columns_of(line);
    if (header) columns = *header;
    return header.has_value();
  };
  return parse_log<GpuMemorySample>(text, origin, is_gpu_memory_log(text),
                                    {"GPU", kGpuMemoryLogHeader, "nvidia-smi --query-gpu=... --format=csv"},
                                    take_header, [&](const std::string& line) { return parse_gpu_row(line, columns); });
}

GpuMemoryLog read_gpu_memory_log(const std::filesystem::path& path) {
  return parse_gpu_memory_log(read_file(path), path.string());
}

}  // namespace tessera
