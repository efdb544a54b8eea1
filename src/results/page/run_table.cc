#include <fmt/format.h>

#include <functional>

#include "record/metrics.h"
#include "results/page/html.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

// A cell: what is shown, what it sorts by. Numbers carry their exact value.
struct RunCell {
  std::string html;
  std::optional<double> number;
  std::string sort_text;
};

struct RunColumn {
  const char *title, *unit;  // the unit stands under the title
  std::function<RunCell(const RunFigures&)> cell;
};

RunCell number_run_cell(const std::optional<double>& value) {
  if (!value) return {"-", std::nullopt, ""};
  return {readable(*value), value, ""};
}

RunCell memory_run_cell(const std::optional<double>& megabytes) {
  if (!megabytes) return {"-", std::nullopt, ""};
  return {readable_MB(*megabytes), megabytes, ""};
}

RunCell text_run_cell(const std::string& text) {
  return {text.empty() ? "-" : html_text(text), std::nullopt, text};
}

const std::vector<RunColumn>& run_columns() {
  static const std::vector<RunColumn> columns = {
      {"Strategy", "", [](const RunFigures& run) { return text_run_cell(run.strategy); }},
      {"Ranks", "", [](const RunFigures& run) { return number_run_cell(run.num_ranks); }},
      {"Speed", "samples/s", [](const RunFigures& run) { return number_run_cell(run.samples_per_second); }},
      {"Runtime", "",
       [](const RunFigures& run) {
         if (!run.runtime_seconds) return RunCell{"-", std::nullopt, ""};
         return RunCell{readable_seconds(*run.runtime_seconds), run.runtime_seconds, ""};
       }},
      {"Peak memory", "allocated", [](const RunFigures& run) { return memory_run_cell(run.allocated_peak_MB); }},
      {"Train loss", "", [](const RunFigures& run) { return number_run_cell(run.train_loss); }},
      {"Eval loss", "last", [](const RunFigures& run) { return number_run_cell(run.eval_loss); }},
      {"Exact match", "0 to 1",
       [](const RunFigures& run) { return number_run_cell(value_of(*run.record, "exact_match")); }},
      {"F1", "0 to 1", [](const RunFigures& run) { return number_run_cell(value_of(*run.record, "f1")); }},
      {"Accuracy", "%", [](const RunFigures& run) { return number_run_cell(value_of(*run.record, "Accuracy/val")); }},
      {"Busy", "% mean", [](const RunFigures& run) { return number_run_cell(run.busy_mean_percent); }},
      {"Peak memory", "reserved", [](const RunFigures& run) { return memory_run_cell(run.reserved_peak_MB); }},
      {"Peak memory", "used (NVML)", [](const RunFigures& run) { return memory_run_cell(run.used_peak_MB); }},
      {"Peak memory", "host", [](const RunFigures& run) { return memory_run_cell(run.host_peak_MB); }},
      {"Steps", "updates", [](const RunFigures& run) { return number_run_cell(run.last_step); }},
      {"Global batch", "samples",
       [](const RunFigures& run) { return number_run_cell(run.record->facts.number("global_batch")); }},
      {"Precision", "", [](const RunFigures& run) { return text_run_cell(run.record->text("precision")); }},
      {"Job", "", [](const RunFigures& run) { return text_run_cell(run.job); }},
      {"Started", "UTC", [](const RunFigures& run) { return text_run_cell(run.record->started); }},
  };
  return columns;
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
  std::vector<std::string> states;
  for (const char* state : {"finished", "stopped_early", "running", "interrupted", "killed", "failed"}) {
    for (const RunFigures& run : page.runs) {
      if (run.state != state) continue;
      states.push_back(state);
      break;
    }
  }
  std::string out =
      "<div class=\"controls\"><label>Filter <input id=\"filter\" type=\"search\" placeholder=\"name, strategy, ...\" "
      "autocomplete=\"off\"></label><label>Status <select id=\"status\"><option value=\"\">all</option>";
  for (const std::string& state : states) out += fmt::format("<option>{}</option>", html_text(state));
  return out + fmt::format("</select></label><span id=\"shown\" role=\"status\">{0} of {0} runs</span></div>",
                           page.runs.size());
}

}  // namespace

std::string run_table_section(const PageContent& page) {
  std::vector<const RunColumn*> columns;  // those that any run fills
  std::vector<bool> is_number;
  for (const RunColumn& column : run_columns()) {
    bool is_filled = false, has_number = false;
    for (const RunFigures& run : page.runs) {
      const RunCell cell = column.cell(run);
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
    for (std::size_t i = 0; i < columns.size(); ++i) out += cell_html(columns[i]->cell(page.runs[run]), is_number[i]);
    out += "</tr>\n";
  }
  return section("runs", "Runs", out + "</tbody></table></div>");
}

}  // namespace tessera
