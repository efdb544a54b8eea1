#include "experiment/import/import_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera {
namespace {

std::string remark_section(const Remarks& remarks, Remark::Kind kind, const std::string& title) {
  std::size_t place_width = 0, what_width = 0;
  for (const Remark& remark : remarks) {
    if (remark.kind != kind) continue;
    place_width = std::max(place_width, remark.place.size());
    what_width = std::max(what_width, std::min<std::size_t>(remark.what.size(), 36));
  }
  std::string text;
  for (const Remark& remark : remarks) {
    if (remark.kind != kind) continue;
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", remark.place, place_width, remark.what, what_width, remark.why);
  }
  return text.empty() ? "" : fmt::format("\n{}:\n{}", title, text);
}

}  // namespace

std::string import_report(const Import& imported) {
  const ResolvedExperiment& experiment = imported.resolved;
  std::string text =
      fmt::format("{} is {}: {}, {} node{} x {} GPU{}\n  job {}: {}\n", imported.script, imported.name, imported.job,
                  experiment.nodes(), experiment.nodes() == 1 ? "" : "s", experiment.gpus_per_node(),
                  experiment.gpus_per_node() == 1 ? "" : "s", imported.job, imported.job_reason);
  text += remark_section(imported.remarks, Remark::Kind::kTaken, "Understood");
  text += remark_section(imported.remarks, Remark::Kind::kSite, "Belongs to the site file");
  text += remark_section(imported.remarks, Remark::Kind::kNotNeeded, "Not needed");
  text += remark_section(imported.remarks, Remark::Kind::kComputed, "Left out: only a shell can compute it");
  text += remark_section(imported.remarks, Remark::Kind::kLeftOut, "Left out: check whether the run needs it");
  if (!experiment.notes.empty()) {
    text += "\n`tessera train` says:\n";
    for (const std::string& note : experiment.notes) text += fmt::format("  {}\n", note);
  }
  if (!experiment.missing.empty()) {
    text += fmt::format("\nBefore it can run, give the settings that the Python program had in its code:\n  {}\n",
                        experiment.missing);
  }
  return text + fmt::format("\nThe same run without the catalogue:\n\n{}\n", imported.command);
}

}  // namespace tessera
