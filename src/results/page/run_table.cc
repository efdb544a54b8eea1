#include <fmt/format.h>

#include <algorithm>

#include "results/page/html.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

struct RunColumn {
  const char *title, *unit;                 // the unit stands under the title
  const char* metric = nullptr;             // none: the text
  std::string (*shown)(double) = readable;  // the metric
  std::string (*text)(const RunFigures&) = nullptr;
};

const RunColumn kRunColumns[] = {
    {.title = "Strategy", .unit = "", .text = [](const RunFigures& run) { return run.strategy; }},
    {"Ranks", "", "ranks"},
    {"Speed", "samples/s", "samples_per_second"},
    {"Runtime", "", "elapsed", readable_seconds},
    {"Peak memory", "allocated", "allocated_peak_MB", readable_MB},
    {"Train loss", "", "train_loss"},
    {"Eval loss", "last", "eval_loss"},
    {"Exact match", "0 to 1", "exact_match"},
    {"F1", "0 to 1", "f1"},
    {"Accuracy", "%", "Accuracy/val"},
    {"Busy", "% mean", "busy_mean_percent"},
    {"Peak memory", "reserved", "reserved_peak_MB", readable_MB},
    {"Peak memory", "used (NVML)", "used_peak_MB", readable_MB},
    {"Peak memory", "host", "resident_peak_MB", readable_MB},
    {"Steps", "updates", "steps_done"},
    {"Global batch", "samples", "global_batch"},
    {.title = "Precision", .unit = "", .text = [](const RunFigures& run) { return run.record->text("precision"); }},
    {.title = "Job", .unit = "", .text = [](const RunFigures& run) { return run.job; }},
    {.title = "Started", .unit = "UTC", .text = [](const RunFigures& run) { return run.record->started; }},
};

struct RunCell {
  std::string html;
  std::optional<double> number;  // exactly, to sort by
};

RunCell cell_of(const RunColumn& column, const RunFigures& run) {
  if (column.metric == nullptr) {
    const std::string text = column.text(run);
    return {text.empty() ? "-" : html_text(text), std::nullopt};
  }
  const std::optional<double> number = run.value(column.metric);
  return {number ? column.shown(*number) : "-", number};
}

std::string header(const std::string& title, const std::string& unit, bool is_number) {
  return fmt::format(
      "<th scope=\"col\" aria-sort=\"none\"{}><button type=\"button\">{}<span class=\"arrow\" "
      "aria-hidden=\"true\"></span>{}</button></th>",
      is_number ? " class=\"num\"" : "", title, unit.empty() ? "" : "<small>" + unit + "</small>");
}

std::string cell_html(const RunCell& cell, bool is_number) {
  if (cell.number) return fmt::format("<td class=\"num\" data-v=\"{}\">{}</td>", exact(*cell.number), cell.html);
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"num\"" : "", cell.html);
}

std::string controls(const PageContent& page) {
  std::string out =
      "<div class=\"controls\"><label>Filter <input id=\"filter\" type=\"search\" placeholder=\"name, strategy, ...\" "
      "autocomplete=\"off\"></label><label>Status <select id=\"status\"><option value=\"\">all</option>";
  for (const char* state : kStates) {
    const auto has_it = [&](const RunFigures& run) { return run.state == state; };
    if (std::any_of(page.runs.begin(), page.runs.end(), has_it)) out += fmt::format("<option>{}</option>", state);
  }
  return out + fmt::format("</select></label><span id=\"shown\" role=\"status\">{0} of {0} runs</span></div>",
                           page.runs.size());
}

}  // namespace

std::string run_table_section(const PageContent& page) {
  std::vector<const RunColumn*> columns;  // those that any run fills
  std::vector<bool> is_number;
  for (const RunColumn& column : kRunColumns) {
    bool is_filled = false, has_number = false;
    for (const RunFigures& run : page.runs) {
      const RunCell cell = cell_of(column, run);
      is_filled |= cell.html != "-";
      has_number |= cell.number.has_value();
    }
    if (!is_filled) continue;
    columns.push_back(&column);
    is_number.push_back(has_number);
  }
  std::string out = controls(page) + "<div class=\"scroll\" tabindex=\"0\"><table id=\"runs_table\"><thead><tr>" +
                    header("Run", "", false) + header("Status", "", false);
  for (std::size_t i = 0; i < columns.size(); ++i) out += header(columns[i]->title, columns[i]->unit, is_number[i]);
  out += "</tr></thead><tbody>\n";
  for (std::size_t run = 0; run < page.runs.size(); ++run) {
    out += fmt::format("<tr data-state=\"{}\"><th scope=\"row\">{}</th><td>{}</td>", html_text(page.runs[run].state),
                       run_link(page, run), badge(page.runs[run].state));
    for (std::size_t i = 0; i < columns.size(); ++i)
      out += cell_html(cell_of(*columns[i], page.runs[run]), is_number[i]);
    out += "</tr>\n";
  }
  return section("runs", "Runs", out + "</tbody></table></div>");
}

}  // namespace tessera
