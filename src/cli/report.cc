// `tessera report`: one page about runs, as a file that opens in any browser.
#include <fmt/format.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/quantity.h"
#include "core/text.h"
#include "experiment/catalogue.h"
#include "results/runs_page.h"

namespace tessera {
namespace {

void declare(Schema& schema, ReportRequest& settings) {
  schema.positionals("DIR...", &settings.folders);
  schema.text("output", &settings.output, "the file to write", {.preset = "report.html", .short_name = 'o'});
  schema.text("title", &settings.title, "the page's title; none: the folders");
}

int run_report(Schema&, ReportRequest& settings) {
  if (settings.folders.empty()) throw UsageError("tessera report takes folders with runs: tessera report DIR...");
  return write_report(settings, {});
}

}  // namespace

Command report_command() {
  return with_settings<ReportRequest>(
      {.name = "report",
       .summary = "one page about recorded runs: words, tables and plots in one HTML file",
       .about = "one page about the runs below folders: words, tables and plots in one HTML file",
       .has_rank = false},
      declare, run_report);
}

int write_report(const ReportRequest& request, const std::vector<UnrecordedRun>& others) {
  const std::string title = request.title.empty() ? "Runs in " + join(request.folders, ", ") : request.title;
  const RunsPage page = make_runs_page(find_run_files(request.folders), title, request.output,
                                       Catalogue(CatalogueOptions()), find_bandwidth_logs(request.folders), others);
  std::string unrecorded;
  for (const UnrecordedRun& run : others) {
    unrecorded += fmt::format("\nfailed before it left a record: {}: {}", run.name, run.reason);
  }
  if (page.num_runs == 0) {
    std::string message = "no run found: looked for run.json in and below " + join(request.folders, ", ") + unrecorded;
    for (const std::string& problem : page.problems) message += "\nskipped: " + problem;
    throw UsageError(message);
  }
  write_file_atomically(request.output, page.html);
  const std::size_t num_runs = page.num_runs + others.size();
  print_out(fmt::format("{}\n{} {}, {} finished{}; {}{}\n", request.output, num_runs, num_runs == 1 ? "run" : "runs",
                        page.num_finished,
                        page.problems.empty() ? "" : fmt::format(", {} skipped", page.problems.size()),
                        human_bytes(static_cast<std::int64_t>(page.html.size())), unrecorded));
  return 0;
}

}  // namespace tessera
