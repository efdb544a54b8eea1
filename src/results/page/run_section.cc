// One <details> per run: how it ended, what it was, its numbers, plots and files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "parallel/placement.h"
#include "results/page/html.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

constexpr std::size_t kMostCollectives = 12;

std::string shown_value_of(const LogValue& value) {
  if (const double* real = std::get_if<double>(&value)) return readable(*real);
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&value)) return grouped(*whole);
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const std::string* text = std::get_if<std::string>(&value)) return printable(*text);
  return "none";
}

std::string exact_attribute(const LogValue& value) {
  if (const double* real = std::get_if<double>(&value)) return fmt::format(" data-v=\"{}\"", exact(*real));
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&value)) return fmt::format(" data-v=\"{}\"", *whole);
  return "";
}

// Names and values side by side; `kind` says in the page's source where a number comes from.
std::string number_list(const std::string& heading, const char* kind, const LogRecord& record) {
  if (record.empty()) return "";
  std::string out = fmt::format("<div><h4>{}</h4><dl data-kind=\"{}\">", heading, kind);
  for (const auto& [name, value] : record.entries()) {
    out += fmt::format("<dt>{}</dt><dd{}>{}</dd>", html_text(name), exact_attribute(value),
                       html_text(shown_value_of(value)));
  }
  return out + "</dl></div>";
}

std::string planned_list(const RunFigures& run) {
  const LogRecord& plan = run.record->planned_memory;
  if (plan.empty()) return "";
  std::string out = "<div><h4>Planned memory per rank</h4><dl data-kind=\"planned_memory\">";
  for (const auto& [name, value] : plan.entries()) {
    const std::optional<double> bytes = plan.number(name);
    if (!bytes) continue;
    out += fmt::format("<dt>{}</dt><dd data-v=\"{}\">{}</dd>", html_text(name), exact(*bytes),
                       readable_MB(*bytes / (1 << 20)));
  }
  if (const auto peak = run.value("allocated_peak_MB")) {
    out += fmt::format("<dt>measured peak (allocated)</dt><dd data-v=\"{}\">{}</dd>", exact(*peak), readable_MB(*peak));
  }
  return out + "</dl></div>";
}

// None: the strategy has no collectives, or the record was written by another program.
std::optional<Placement> row_of(const RunRecord& run) {
  const std::string strategy = strategy_text(run);
  const std::vector<std::string> names = strategy_names();
  if (std::find(names.begin(), names.end(), strategy) == names.end()) return std::nullopt;
  const Placement& row = placement_of(strategy);
  return row.is_for_one_rank ? std::nullopt : std::optional(row);
}

// 11 of "block_11" and of "transformer.h.11"; -1: it has no number.
long long number_of_unit(const std::string& unit) {
  const std::size_t begin = unit.find_last_not_of("0123456789") + 1;
  return parse_integer(unit.substr(begin)).value_or(-1);
}

bool is_last_unit(const RunRecord& run, const std::string& unit) {
  return std::all_of(run.collectives.begin(), run.collectives.end(),
                     [&](const CollectiveRecord& each) { return number_of_unit(each.unit) <= number_of_unit(unit); });
}

// The last update of an epoch may have fewer micro-steps than the others.
double num_micro_steps(const RunRecord& run, double updates) {
  if (fact_is_true(run, "merge_accumulation")) return updates;
  const double most = updates * run.facts.number("accumulation").value_or(1);
  const auto rows = run.facts.number("train_rows"), batch = run.facts.number("batch_size"), epochs = run.last("epoch");
  if (!rows || !batch || !epochs || *batch <= 0 || num_ranks(run) < 1) return most;
  const double batches = std::round(*epochs * std::ceil(*rows / (*batch * num_ranks(run))));
  const double steps = run.last("step").value_or(0);                    // to which the epochs belong
  return steps > 0 ? std::min(most, batches * updates / steps) : most;  // without those before it resumed
}

std::optional<double> least_calls(const RunRecord& run, const CollectiveRecord& collective, double updates) {
  const std::optional<Placement> row = row_of(run);
  const bool is_root = collective.unit == "root";
  if (!row || (!is_root && number_of_unit(collective.unit) < 0)) return std::nullopt;
  const double micro_steps = num_micro_steps(run, updates);
  if (collective.operation == "all_gather") {
    if (is_root || !row->parameters.is_split()) return updates;
    // In forward and in backward; the last unit is kept between them.
    const bool is_kept = !row->released_after_forward || is_last_unit(run, collective.unit);
    return is_kept ? micro_steps : 2 * micro_steps;
  }
  if (collective.operation == "reduce_scatter") return row->gradients.is_split() ? micro_steps : updates;
  if (collective.operation == "all_reduce" && row->parameters.is_split()) return micro_steps;
  return std::nullopt;
}

// Bytes that the run's updates need for this operation and unit, by docs/collectives.md: the strategy's calls x bytes
// of a call. None: that page says nothing about it, as of the gradient norm.
std::optional<double> least_bytes(const RunRecord& run, const CollectiveRecord& collective) {
  const double updates = static_cast<double>(steps_done(run)) - run.facts.number("first_step").value_or(0);
  if (collective.calls == 0 || updates <= 0) return std::nullopt;
  const std::optional<double> calls = least_calls(run, collective, updates);
  if (!calls) return std::nullopt;
  return *calls * static_cast<double>(collective.bytes) / static_cast<double>(collective.calls);
}

std::string MiB_text(double bytes) {
  return readable(bytes / (1 << 20));
}

std::string collectives_table(const RunRecord& run) {
  if (run.collectives.empty()) return "";
  std::vector<CollectiveRecord> sorted = run.collectives;
  const bool has_seconds = std::any_of(sorted.begin(), sorted.end(),
                                       [](const CollectiveRecord& each) { return each.bytes > 0 && each.seconds > 0; });
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
    return has_seconds ? a.seconds > b.seconds : a.bytes > b.bytes;
  });
  PageTable table;
  table.title = has_seconds ? "Collectives of rank 0, the slowest first" : "Collectives of rank 0, the largest first";
  table.columns = {"Operation", "Unit", "Calls", "MiB", "MiB, minimum", "Seconds"};
  CollectiveRecord all;
  double minimum_of_all = 0;
  const auto add = [&](const CollectiveRecord& each, const std::optional<double>& minimum) {
    // An operation on a GPU's stream is not timed: see a trace.
    table.rows.push_back({each.operation, each.unit, grouped(each.calls), MiB_text(double(each.bytes)),
                          minimum ? MiB_text(*minimum) : "-", each.seconds > 0 ? readable(each.seconds) : "-"});
  };
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::optional<double> minimum = least_bytes(run, sorted[i]);
    if (i < kMostCollectives) add(sorted[i], minimum);
    all.calls += sorted[i].calls;
    all.bytes += sorted[i].bytes;
    all.seconds += sorted[i].seconds;
    minimum_of_all += minimum.value_or(0);
  }
  all.operation = "all";
  add(all, minimum_of_all > 0 ? std::optional(minimum_of_all) : std::nullopt);
  if (sorted.size() > kMostCollectives) {
    table.notes = {fmt::format("{} of {} are shown.", kMostCollectives, sorted.size())};
  }
  table.notes.push_back(
      "Minimum: what the updates of this strategy need, as docs/collectives.md lists it. What is above it was sent by "
      "evaluations, checkpoints and the start.");
  return page_table(table);
}

std::string own_settings(const RunRecord& run) {
  PageTable table;
  table.title = "Those that are not the default's";
  table.columns = {"Setting", "Value", "From"};
  for (const RecordedSetting& each : run.settings) {
    if (each.origin != "default") table.rows.push_back({each.name, printable(each.value), printable(each.origin)});
  }
  if (table.rows.empty()) return "";
  return "<details><summary>Settings</summary>" + page_table(table) + "</details>";
}

std::string links(const PageContent& page, const RunRecord& run) {
  std::vector<std::string> all;
  const std::filesystem::path folder = run.file.parent_path();
  const auto add = [&](const std::string& name, const std::filesystem::path& file) {
    all.push_back(fmt::format("<a href=\"{}\">{}</a>", link_to(folder / file, page.input.folder), html_text(name)));
  };
  add("run.json", run.file.filename());
  const auto add_all = [&](const std::string& kind, const std::vector<std::string>& files) {
    for (const std::string& file : files) add(kind + " " + std::filesystem::path(file).filename().string(), file);
  };
  add_all("GPU memory log", run.gpu_logs);
  add_all("CPU memory log", run.cpu_logs);
  add_all("cgroup memory log", run.cgroup_logs);
  add_all("trace", run.traces);
  for (const char* file : {"metrics.csv", "log"}) {
    std::error_code error;
    if (std::filesystem::exists(folder / file, error)) add(file, file);
  }
  return "<p class=\"files\">Files: " + join(all, " &middot; ") + "</p>";
}

// The words that a closed section shows beside the run's name.
std::string headline(const RunFigures& run) {
  std::vector<std::string> words;
  if (!run.strategy.empty()) words.push_back(run.strategy);
  if (run.num_ranks) words.push_back(counted(num_ranks(*run.record), run.rank_word()));
  if (run.samples_per_second) words.push_back(readable(*run.samples_per_second) + " samples/s");
  if (const auto peak = run.value("allocated_peak_MB")) words.push_back(readable_MB(*peak) + " peak allocated");
  return html_text(join(words, ", "));
}

std::string run_section(const PageContent& page, std::size_t place) {
  const RunFigures& run = page.runs[place];
  const RunRecord& record = *run.record;
  std::string out = fmt::format(
      "<details class=\"run\" id=\"run-{}\"{}><summary><h3>{}</h3> {} <span class=\"headline\">{}</span></summary>\n",
      place, page.runs.size() <= 2 ? " open" : "", html_text(run.name), badge(run.state), headline(run));
  const RecordedSetting* name = record.setting("run_name");
  if (name != nullptr && !name->value.empty()) {
    out += fmt::format("<p>Name: {}</p>", html_text(printable(name->value)));
  }
  if (!record.exit_reason.empty()) out += fmt::format("<pre class=\"reason\">{}</pre>", html_text(record.exit_reason));
  out += fmt::format("<pre>{}</pre>", html_text(printable(join(record.command, " "), 2000)));
  out += links(page, record) + "<div class=\"plots\">\n";
  for (const std::string& plot : run_plots(page, place)) out += plot;
  out += "</div><div class=\"lists\">" + number_list("Facts", "facts", record.facts) +
         number_list("Summary", "summary", record.summary) + planned_list(run) + "</div>";
  return out + collectives_table(record) + own_settings(record) + "</details>\n";
}

}  // namespace

std::string run_sections(const PageContent& page) {
  std::string out;
  for (std::size_t run = 0; run < page.num_sections; ++run) out += run_section(page, run);
  if (page.num_sections < page.runs.size()) {
    out += fmt::format(
        "<p class=\"note\">The first {} of {} runs have a section here; the table above has all of them. Name fewer "
        "folders to see the plots of the others.</p>",
        page.num_sections, page.runs.size());
  }
  return section("each", "Each run", out);
}

}  // namespace tessera
