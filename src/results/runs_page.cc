#include "results/runs_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <set>

#include "core/error.h"
#include "core/host.h"
#include "core/version.h"
#include "monitor/memory_logs.h"
#include "record/run_memory.h"
#include "record/run_record.h"
#include "results/questions.h"
#include "results/tables/experiment_table.h"

namespace tessera {
namespace {

// By name, 2_gpus before 16_gpus. More runs than have a section of their own: the newest first.
void sort_for_page(std::vector<RunRecord>& runs) {
  const bool are_many = runs.size() > kMostRunSections;
  std::stable_sort(runs.begin(), runs.end(), [&](const RunRecord& a, const RunRecord& b) {
    return are_many ? a.started > b.started : ::strverscmp(a.file.c_str(), b.file.c_str()) < 0;
  });
}

void read_shown_runs(std::vector<RunRecord>& runs) {
  std::vector<std::filesystem::path> files;
  for (std::size_t i = 0; i < std::min(runs.size(), kMostRunSections); ++i) files.push_back(runs[i].file);
  FoundRuns whole = read_runs(files, RunDetail::kWhole);
  if (whole.runs.size() == files.size()) std::move(whole.runs.begin(), whole.runs.end(), runs.begin());
}

PageTable page_table(const Table& table) {
  PageTable shown;
  shown.title = table.title;
  for (const TableColumn& column : table.columns) shown.columns.push_back(column_heading(column));
  for (const auto& row : table.rows) {
    std::vector<std::string>& texts = shown.rows.emplace_back();
    for (const TableCell& cell : row) texts.push_back(cell.text.empty() ? "-" : cell.text);
  }
  shown.notes = reasons_below(table);
  shown.notes.insert(shown.notes.end(), table.notes.begin(), table.notes.end());
  return shown;
}

// The declared tables, and one for each family that they leave out.
std::vector<TableSpec> tables_for(const Catalogue& catalogue, const std::vector<ExperimentSpec>& experiments) {
  std::vector<TableSpec> tables = catalogue.tables();
  std::set<std::string> families;
  for (const ExperimentSpec& experiment : experiments) {
    if (is_in_table(experiment, catalogue.tables()) || !families.insert(experiment.family).second) continue;
    if (std::optional<TableSpec> general = general_table(experiment.family, experiments)) {
      tables.push_back(*std::move(general));
    }
  }
  return tables;
}

// The tables that at least two of the runs fill.
std::vector<PageTable> tables_of(const std::vector<RunRecord>& runs, const Catalogue& catalogue, double now) {
  const std::vector<ExperimentSpec> experiments = experiments_of(catalogue, runs);
  std::vector<PageTable> tables;
  for (const TableSpec& spec : tables_for(catalogue, experiments)) {
    const ChosenRows chosen = choose_rows(spec, experiments, runs, {}, now);
    const auto num_filled = std::count_if(chosen.rows.begin(), chosen.rows.end(),
                                          [](const ChosenRow& row) { return !row.records.empty(); });
    if (num_filled >= 2) tables.push_back(page_table(fill_table(spec, chosen)));
  }
  return tables;
}

// "node2" of gpu_memory_log_node2; with one host, nothing.
std::string host_of(const std::filesystem::path& log, const std::string& start) {
  const std::string stem = log.stem().string();
  return stem.size() > start.size() && stem.starts_with(start) ? stem.substr(start.size()) : "";
}

// GPU logs hold local times, read as if they were UTC: as nvidia-smi writes them, they name no zone.
double utc_of_local(double seconds) {
  const double whole = std::floor(seconds);
  std::tm time = fmt::gmtime(static_cast<std::time_t>(whole));
  time.tm_isdst = -1;
  return static_cast<double>(std::mktime(&time)) + (seconds - whole);
}

void add_gpu_log(const std::filesystem::path& file, std::size_t run, PageInput& page) {
  const GpuMemoryLog log = read_gpu_memory_log(file);
  if (log.samples.empty()) return;
  const std::string host = host_of(file, "gpu_memory_log_");
  const double begin = seconds_of_utc(page.runs[run].started).value_or(utc_of_local(log.samples.front().seconds));
  std::vector<LogCurve> by_index;
  for (const GpuMemorySample& sample : log.samples) {
    if (!sample.used_MiB) continue;
    const std::string name = fmt::format("{}GPU {}", host.empty() ? "" : host + " ", sample.index);
    auto found =
        std::find_if(by_index.begin(), by_index.end(), [&](const LogCurve& each) { return each.name == name; });
    if (found == by_index.end()) {
      by_index.push_back({run, name, {}, sample.total_MiB.value_or(0)});
      found = by_index.end() - 1;
    }
    found->points.push_back({utc_of_local(sample.seconds) - begin, *sample.used_MiB});
  }
  page.gpu_logs.insert(page.gpu_logs.end(), by_index.begin(), by_index.end());
}

void add_host_log(const std::filesystem::path& file, std::size_t run, PageInput& page) {
  const std::string host = host_of(file, "cpu_memory_log_");
  LogCurve memory{run, host.empty() ? "all processes" : host, {}}, processors = memory;
  for (const CpuMemorySample& sample : read_cpu_memory_log(file).samples) {
    const double seconds = page.runs[run].host_logs_start_seconds + sample.elapsed_seconds;
    memory.points.push_back({seconds, sample.real_MB});
    processors.points.push_back({seconds, sample.cpu_percent});
  }
  if (memory.points.empty()) return;
  page.host_logs.push_back(std::move(memory));
  page.cpu_logs.push_back(std::move(processors));
}

void add_logs(PageInput& page) {
  const std::size_t num_shown = std::min(page.runs.size(), kMostRunSections);
  const auto add = [&](const std::vector<std::filesystem::path>& files, std::size_t run, const auto& read) {
    for (const std::filesystem::path& file : files) {
      try {
        read(file, run, page);
      } catch (const Error& error) {
        page.passed_over.push_back(error.what());
      }
    }
  };
  for (std::size_t i = 0; i < num_shown; ++i) {
    add(gpu_logs_of(page.runs[i]), i, add_gpu_log);
    add(cpu_logs_of(page.runs[i]), i, add_host_log);
  }
}

}  // namespace

RunsPage make_runs_page(const std::vector<std::filesystem::path>& records, const std::string& title,
                        const std::filesystem::path& file, const Catalogue& catalogue,
                        std::vector<BandwidthLog> bandwidths, std::vector<UnrecordedRun> unrecorded) {
  const bool are_many = records.size() > kMostRunSections;
  FoundRuns found = read_runs(records, are_many ? RunDetail::kBrief : RunDetail::kWhole);
  sort_for_page(found.runs);
  if (are_many) read_shown_runs(found.runs);
  PageInput page;
  page.title = title;
  page.generated_by = fmt::format("tessera {}", kVersion);
  page.now = wall_seconds();
  page.folder = std::filesystem::absolute(file).parent_path();
  page.runs = std::move(found.runs);
  page.unrecorded = std::move(unrecorded);
  page.passed_over = found.problems;
  page.tables = tables_of(page.runs, catalogue, page.now);
  for (const ExperimentSpec& spec : experiments_of(catalogue, {})) page.baselines[spec.name] = spec.study.baseline;
  page.questions = answer_questions(page.runs, catalogue.models());
  std::erase_if(page.questions, [](const Answer& answer) { return !answer.why_not.empty(); });
  add_logs(page);
  page.bandwidth_logs = std::move(bandwidths);
  const auto num_finished =
      std::count_if(page.runs.begin(), page.runs.end(), [](const RunRecord& run) { return run.status == "finished"; });
  return {make_page(page), page.runs.size(), static_cast<std::size_t>(num_finished), std::move(found.problems)};
}

std::string page_of_run(const std::filesystem::path& folder, const std::filesystem::path& file) {
  CatalogueOptions options;
  options.has_own = false;  // one run fills no table, and a mistake in a user's files is none of its business
  return make_runs_page({folder / "run.json"}, folder.string(), file, Catalogue(options)).html;
}

}  // namespace tessera
