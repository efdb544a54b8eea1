// The pieces that several sections use, what they share about runs, and the sections that are little more than their
// input.
#include "results/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "record/metrics.h"
#include "results/page/html.h"

namespace tessera {
namespace {

constexpr std::size_t kMostMarks = 40;  // more would hide the curves
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool looks_like_number(const std::string& text) {
  return !text.empty() && (text == "-" || (text.find_first_of("0123456789") != std::string::npos &&
                                           text.find_first_not_of("0123456789.,+-e%() xGMKiB/s") == std::string::npos));
}

std::string strategy_label(const RunRecord& run) {
  std::string label = strategy_text(run);
  const bool offloads_parameters = fact_is_true(run, "offload_param");
  if (fact_is_true(run, "offload_optimizer") || offloads_parameters) {
    label += offloads_parameters ? " + parameter offload" : " + offload";
    if (fact_is_true(run, "pin_memory")) label += ", pinned";
  }
  return label;
}

// The deepest folder above all runs' folders; of a single run the one above it.
std::filesystem::path shared_folder(const std::vector<RunRecord>& runs) {
  std::filesystem::path shared;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto above = std::filesystem::absolute(runs[i].file).lexically_normal().parent_path().parent_path();
    if (i == 0) shared = above;
    const auto end = std::mismatch(shared.begin(), shared.end(), above.begin(), above.end()).first;
    std::filesystem::path common;
    for (auto part = shared.begin(); part != end; ++part) common /= *part;
    shared = common;
  }
  return shared;
}

}  // namespace

std::optional<double> RunFigures::value(const std::string& metric) const {
  return value_of(*record, metric);
}

std::string RunFigures::rank_word() const {
  return record->text("device") == "cpu" || resident_peak_MB(*record) ? "rank" : "GPU";
}

std::vector<RunFigures> figures_of(const std::vector<RunRecord>& runs, double now) {
  const std::filesystem::path shared = shared_folder(runs);
  std::vector<RunFigures> all;
  for (const RunRecord& run : runs) {
    const auto folder = std::filesystem::absolute(run.file).lexically_normal().parent_path();
    all.push_back({&run, folder.lexically_relative(shared).generic_string(), status_of(run, now), job_text(run),
                   strategy_label(run), value_of(run, "ranks"), samples_per_second(run), value_of(run, "elapsed")});
  }
  return all;
}

MetricCurves::MetricCurves(const RunRecord& run) : run_(run) {
  begin_ = seconds_of_utc(run.started).value_or(std::numeric_limits<double>::infinity());
  // A resumed run also has the metrics of the run before it.
  if (!run.metrics.empty()) begin_ = std::min(begin_, run.metrics.front().number("time").value_or(begin_));
  double epochs_ended = 0;
  for (const LogRecord& record : run.metrics) {
    const double seconds = seconds_of(record), epoch = record.number("epoch").value_or(kUnknown);
    if (!std::isfinite(seconds)) continue;
    seconds_ = std::max(seconds_, seconds);
    for (; std::floor(epoch + 1e-9) > epochs_ended && epoch_ends_.size() <= kMostMarks; ++epochs_ended) {
      epoch_ends_.push_back({seconds, fmt::format("end of epoch {}", epochs_ended + 1)});
    }
  }
  if (epoch_ends_.size() > kMostMarks) epoch_ends_.clear();
}

// To the millisecond: a difference of seconds since 1970 has no more digits.
double MetricCurves::seconds_of(const LogRecord& record) const {
  return std::round(1e3 * (record.number("time").value_or(kUnknown) - begin_)) / 1e3;
}

std::vector<Point> MetricCurves::curve(const std::string& metric, CurveX x) const {
  std::vector<Point> points;
  for (const LogRecord& record : run_.metrics) {
    const std::optional<double> value = record.number(metric);
    if (!value) continue;
    // Epochs are counted: logs without one are the next in line.
    const double at = x == CurveX::kStep      ? record.number("step").value_or(kUnknown)
                      : x == CurveX::kSeconds ? seconds_of(record)
                                              : record.number("epoch").value_or(static_cast<double>(points.size() + 1));
    points.push_back({at, *value});
  }
  return points;
}

std::string section(const std::string& id, const std::string& heading, const std::string& content) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, html_text(heading), content);
}

std::string figure(const std::string& svg, const std::string& caption) {
  const std::string below = caption.empty() ? "" : fmt::format("<figcaption>{}</figcaption>", html_text(caption));
  return fmt::format("<figure>{}{}</figure>\n", svg, below);
}

std::string run_link(const PageContent& page, std::size_t run) {
  const std::string name = html_text(page.runs[run].name);
  return run < page.num_sections ? fmt::format("<a href=\"#run-{}\">{}</a>", run, name) : name;
}

std::string badge(const std::string& state) {
  std::string words = state;
  std::replace(words.begin(), words.end(), '_', ' ');
  const bool is_good = state == "finished" || state == "stopped_early";
  const bool is_bad = state == "failed" || state == "killed";
  return fmt::format("<span class=\"badge {}\">{}</span>",
                     is_good  ? "good"
                     : is_bad ? "bad"
                              : "open",
                     html_text(words));
}

std::string page_table(const PageTable& table) {
  std::string out = fmt::format("<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr>",
                                html_text(table.title));
  for (const std::string& column : table.columns) out += "<th scope=\"col\">" + html_text(column) + "</th>";
  out += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* kind = i == 0 ? "<th scope=\"row\">" : looks_like_number(row[i]) ? "<td class=\"num\">" : "<td>";
      out += kind + html_text(row[i]) + (i == 0 ? "</th>" : "</td>");
    }
    out += "</tr>";
  }
  out += "</tbody></table></div>";
  for (const std::string& note : table.notes) out += "<p class=\"note\">" + html_text(note) + "</p>";
  return out + "\n";
}

std::vector<std::vector<std::size_t>> runs_by_job(const PageContent& page) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> by_job;
  for (std::size_t run = 0; run < page.runs.size(); ++run) value_beside(by_job, page.runs[run].job).push_back(run);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [job, runs] : by_job) groups.push_back(std::move(runs));
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return groups;
}

std::string tables_section(const PageContent& page) {
  std::string out;
  for (const PageTable& table : page.input.tables) out += page_table(table);
  return out.empty() ? "" : section("tables", "Tables", out);
}

std::string questions_section(const PageContent& page) {
  std::string out;
  for (const Answer& each : page.input.questions) {
    out +=
        fmt::format("<div class=\"question\"><h3>{}</h3><p>{}</p>", html_text(each.question), html_text(each.answer));
    if (!each.arithmetic.empty()) out += fmt::format("<pre>{}</pre>", html_text(each.arithmetic));
    out += "</div>\n";
  }
  return out.empty() ? "" : section("questions", "Questions and answers", out);
}

}  // namespace tessera
