#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "config/schema.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/version.h"
#include "report/page/page.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct ReportSettings {
  std::vector<std::string> folders;
  std::string output, title;
};

// Every run.json at or below a folder, the newest run first. What cannot be read is named and passed over.
void collect_runs(const std::string& folder, PageInput& input) {
  if (!fs::exists(folder)) throw UsageError(fmt::format("{}: no such file or folder", folder));
  std::vector<fs::path> files;
  if (fs::is_regular_file(folder)) {
    files.push_back(folder);
  } else {
    const auto options = fs::directory_options::skip_permission_denied;
    for (const auto& entry : fs::recursive_directory_iterator(folder, options)) {
      if (entry.path().filename() == "run.json") files.push_back(entry.path());
    }
  }
  for (const fs::path& file : files) {
    try {
      input.runs.push_back(read_run_record(file));
    } catch (const Error& error) {
      input.passed_over.push_back(error.what());
    }
  }
}

// By name, 2_gpus before 16_gpus. More runs than have a section of their own: the newest first.
void sort_runs(std::vector<RunRecord>& runs) {
  const bool are_many = runs.size() > kMostRunSections;
  std::stable_sort(runs.begin(), runs.end(), [&](const RunRecord& a, const RunRecord& b) {
    return are_many ? a.started > b.started : ::strverscmp(a.file.c_str(), b.file.c_str()) < 0;
  });
}

std::string title_of(const ReportSettings& settings) {
  return settings.title.empty() ? "Runs in " + join(settings.folders, ", ") : settings.title;
}

}  // namespace

int run_report(const std::vector<std::string>& args) {
  ReportSettings settings;
  Schema schema("tessera report", "one page about the runs below folders: words, tables and plots in one HTML file");
  schema.positionals("DIR...", &settings.folders);
  schema.text("output", &settings.output).short_name('o').preset("report.html").help("the file to write");
  schema.text("title", &settings.title).help("the page's title; default: the folders");
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  if (settings.folders.empty()) throw UsageError("tessera report takes folders with runs: tessera report DIR...");
  PageInput input;
  input.title = title_of(settings);
  input.generated_by = fmt::format("tessera {}", kVersion);
  input.now = wall_seconds();
  const fs::path output = settings.output;
  input.folder = fs::absolute(output).parent_path();
  for (const std::string& folder : settings.folders) collect_runs(folder, input);
  if (input.runs.empty()) {
    std::string message = "no run found: looked for run.json in and below " + join(settings.folders, ", ");
    for (const std::string& each : input.passed_over) message += "\npassed over: " + each;
    throw UsageError(message);
  }
  sort_runs(input.runs);
  const std::string page = make_page(input);
  write_file_atomically(output, page);
  const auto num_finished = std::count_if(input.runs.begin(), input.runs.end(),
                                          [](const RunRecord& run) { return run.status == "finished"; });
  print_out(fmt::format("{}\n{} {}, {} finished{}; {}\n", output.string(), input.runs.size(),
                        input.runs.size() == 1 ? "run" : "runs", num_finished,
                        input.passed_over.empty() ? "" : fmt::format(", {} passed over", input.passed_over.size()),
                        human_bytes(static_cast<std::int64_t>(page.size()))));
  return 0;
}

}  // namespace tessera
