#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.h"
#include "results/page/html.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

std::string states_sentence(const PageContent& page) {
  std::map<std::string, std::size_t> by_state;
  std::string first, last;
  for (const RunFigures& run : page.runs) {
    ++by_state[run.state];
    const std::string& started = run.record->started;
    if (started.empty()) continue;
    if (first.empty() || started < first) first = started;
    last = std::max(last, started);
  }
  if (!page.input.unrecorded.empty()) by_state["failed"] += page.input.unrecorded.size();
  std::vector<std::string> parts;
  for (const char* state : kStates) {
    const auto found = by_state.find(state);
    if (found == by_state.end()) continue;
    std::string word = state;
    std::replace(word.begin(), word.end(), '_', ' ');
    parts.push_back(fmt::format("{} {}", found->second, word));
  }
  const std::string when = first.empty()   ? ""
                           : first == last ? ", started " + first
                                           : fmt::format(", started between {} and {}", first, last);
  return fmt::format("{}: {}{}.", counted(std::ssize(page.runs) + std::ssize(page.input.unrecorded), "run"),
                     join(parts, ", "), when);
}

// "bloom-qa: 8 runs with single, zero2 on 1 to 8 GPUs (NVIDIA H200)"
std::string what_ran(const PageContent& page, const std::vector<std::size_t>& group) {
  std::vector<std::string> strategies, devices;
  double least = 0, most = 0;
  for (const std::size_t i : group) {
    const RunFigures& run = page.runs[i];
    add_once(strategies, run.strategy);
    for (const std::string& device : run.record->devices) add_once(devices, device);
    if (!run.num_ranks) continue;
    least = least == 0 ? *run.num_ranks : std::min(least, *run.num_ranks);
    most = std::max(most, *run.num_ranks);
  }
  const RunFigures& first = page.runs[group.front()];
  std::string out =
      fmt::format("{}: {}", first.job.empty() ? "unnamed job" : first.job, counted(std::ssize(group), "run"));
  std::erase(strategies, "");
  std::erase(devices, "");
  if (!strategies.empty()) out += " with " + join(strategies, ", ");
  if (most > 0) {
    out += least == most ? fmt::format(" on {}", counted(std::llround(most), first.rank_word()))
                         : fmt::format(" on {} to {} {}s", least, most, first.rank_word());
  }
  if (!devices.empty()) out += fmt::format(" ({})", join(devices, ", "));
  return html_text(out) + ".";
}

// The finished run with the best value; none where no finished run has it.
std::optional<std::size_t> best_of(const PageContent& page, const std::vector<std::size_t>& group, const char* metric,
                                   bool more_is_better) {
  std::optional<std::size_t> best;
  double best_value = 0;
  for (const std::size_t i : group) {
    const std::optional<double> value = page.runs[i].is_finished() ? page.runs[i].value(metric) : std::nullopt;
    if (!value || (best && !(more_is_better ? *value > best_value : *value < best_value))) continue;
    best = i;
    best_value = *value;
  }
  return best;
}

// A single run is not the best of anything.
std::string lead(const PageContent& page, const std::vector<std::size_t>& group, std::size_t best,
                 const char* of_several, const char* of_one) {
  return group.size() == 1 ? fmt::format("{}: ", of_one)
                           : fmt::format("{}: {} with ", of_several, run_link(page, best));
}

std::string fastest(const PageContent& page, const std::vector<std::size_t>& group) {
  const auto best = best_of(page, group, "samples_per_second", true);
  if (!best) return "";
  const RunFigures& run = page.runs[*best];
  const double speed = *run.samples_per_second;
  std::string out = lead(page, group, *best, "Fastest", "Speed") +
                    fmt::format("<b data-v=\"{}\">{} samples/s</b>", exact(speed), readable(speed));
  if (run.num_ranks && *run.num_ranks > 1) {
    out += fmt::format(" on {} {}s ({} per {})", *run.num_ranks, run.rank_word(), readable(speed / *run.num_ranks),
                       run.rank_word());
  }
  const auto worst = best_of(page, group, "samples_per_second", false);
  if (worst != best && *page.runs[*worst].samples_per_second > 0) {
    const double slow = *page.runs[*worst].samples_per_second;
    out += fmt::format(", {:.2f} times the slowest, {} ({} samples/s)", speed / slow, run_link(page, *worst),
                       readable(slow));
  }
  return out + ".";
}

std::string least_memory(const PageContent& page, const std::vector<std::size_t>& group) {
  // The first that any run of the group has: kinds of memory are never compared with each other.
  constexpr std::pair<const char*, const char*> kinds[] = {{"allocated_peak_MB", "allocated by tensors"},
                                                           {"used_peak_MB", "used, all processes"},
                                                           {"resident_peak_MB", "resident on the host"}};
  for (const auto& [metric, words] : kinds) {
    const auto best = best_of(page, group, metric, false);
    if (!best) continue;
    const double peak = *page.runs[*best].value(metric);
    std::string out =
        lead(page, group, *best, "Least memory", "Memory") +
        fmt::format("a peak of <b data-v=\"{}\">{}</b> per rank ({})", exact(peak), readable_MB(peak), words);
    const auto most = best_of(page, group, metric, true);
    if (most != best) {
      out += fmt::format("; most: {} with {}", run_link(page, *most), readable_MB(*page.runs[*most].value(metric)));
    }
    return out + ".";
  }
  return "";
}

std::string lowest_loss(const PageContent& page, const std::vector<std::size_t>& group) {
  const auto best = best_of(page, group, "eval_loss", false);
  if (!best) return "";
  const double loss = *page.runs[*best].value("eval_loss");
  return lead(page, group, *best, "Lowest eval loss", "Eval loss") +
         fmt::format("<b data-v=\"{}\">{}</b>.", exact(loss), readable(loss));
}

std::string failures(const PageContent& page) {
  constexpr std::size_t kMostFailures = 20;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const RunFigures& run = page.runs[i];
    if (run.state != "failed" && run.state != "killed" && run.state != "interrupted") continue;
    std::string line = fmt::format("<li>{} {}", run_link(page, i), badge(run.state));
    line += fmt::format(" at step {} of {}", steps_done(*run.record), run.record->total_steps);
    if (run.state == "killed") line += ": no sign of life since " + html_text(run.record->updated);
    const std::vector<std::string> reason = split(run.record->exit_reason, '\n');
    if (!reason.front().empty()) line += ": " + html_text(printable(reason.front(), 400));
    lines.push_back(line + "</li>");
  }
  for (const UnrecordedRun& run : page.input.unrecorded) {
    lines.push_back(fmt::format("<li>{} {} before it left a record: {}</li>", html_text(printable(run.name, 200)),
                                badge("failed"), html_text(printable(run.reason, 400))));
  }
  if (lines.empty()) return "";
  std::string out = "<h3>What did not finish</h3><ul>";
  for (std::size_t i = 0; i < std::min(lines.size(), kMostFailures); ++i) out += lines[i];
  out += "</ul>";
  if (lines.size() > kMostFailures) {
    out += fmt::format("<p class=\"note\">and {} more; those with a record are in the table, by their status.</p>",
                       lines.size() - kMostFailures);
  }
  return out;
}

}  // namespace

std::string summary_section(const PageContent& page) {
  std::string out = "<p>" + html_text(states_sentence(page)) + "</p>";
  for (const std::vector<std::size_t>& group : runs_by_job(page)) {
    out += "<p>" + what_ran(page, group) + "</p><ul>";
    for (const std::string& line : {fastest(page, group), least_memory(page, group), lowest_loss(page, group)}) {
      if (!line.empty()) out += "<li>" + line + "</li>";
    }
    out += "</ul>";
  }
  out += failures(page);
  if (!page.input.passed_over.empty()) {
    out += "<h3>Skipped</h3><ul>";
    for (const std::string& each : page.input.passed_over) out += "<li>" + html_text(printable(each, 400)) + "</li>";
    out += "</ul>";
  }
  return section("summary", "Summary", out);
}

}  // namespace tessera
