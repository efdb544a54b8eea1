#include "results/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/log_record.h"
#include "core/quantity.h"
#include "core/text.h"
#include "listeners/console_text.h"
#include "record/metrics.h"
#include "record/run_memory.h"

namespace tessera {
namespace {

std::string summary_line(const std::string& name, const std::string& text) {
  return text.empty() ? "" : fmt::format("{:<14} {}\n", name, text);
}

struct NamedFact {
  const char* fact;
  const char* label = fact;
};

std::string named_facts(const RunRecord& run, const std::vector<NamedFact>& facts) {
  std::vector<std::string> parts;
  for (const auto& [fact, label] : facts) {
    const std::string text = fact_text(run, fact);
    if (!text.empty()) parts.push_back(fmt::format("{} {}", label, printable(text)));
  }
  return join(parts, ", ");
}

std::string time_line(const RunRecord& run) {
  const std::optional<double> seconds = recorded_seconds(run);
  return fmt::format("{}{}; {} of {} steps", printable(run.started),
                     seconds ? fmt::format(", {}", format_interval(*seconds)) : "", steps_done(run), run.total_steps);
}

std::string strategy_line(const RunRecord& run) {
  const std::string facts = named_facts(
      run, {{"offload_optimizer"}, {"offload_param"}, {"units_on_device"}, {"pin_memory"}, {"merge_accumulation"}});
  return fmt::format("{} on {}, {}{}{}", printable(strategy_text(run)), counted(num_ranks(run), "rank"),
                     counted(num_nodes(run), "node"),
                     precision_text(run).empty() ? "" : ", " + printable(precision_text(run)),
                     facts.empty() ? "" : ", " + facts);
}

std::string figure_lines(const RunRecord& run) {
  std::string text;
  for (const Metric& metric : main_metrics()) {
    const std::optional<double> value = metric.compute(run);
    if (!value) continue;
    text += fmt::format("  {:<27} {:>12.{}f} {}\n", metric.label, *value, metric.digits, metric.unit);
  }
  return text.empty() ? "" : "figures\n" + text;
}

std::string breakdown_lines(const RunRecord& run) {
  double total = 0;
  const std::vector<Metric> parts = part_metrics({&run});
  for (const Metric& part : parts) total += part.compute(run).value_or(0);
  if (total <= 0) return "";
  std::string text = "a step's time, mean over ranks\n";
  for (const Metric& part : parts) {
    const double ms = part.compute(run).value_or(0);
    text += fmt::format("  {:<27} {:>12.2f} ms {:>6.1f} %\n", printable(part.label), ms, 100 * ms / total);
  }
  return text;
}

std::string plan_line(const RunRecord& run) {
  const std::optional<double> planned = run.planned_memory.number("total"), peak = allocated_peak_MB(run);
  if (!planned) return "";
  const std::string plan = human_bytes(static_cast<std::int64_t>(*planned));
  if (!peak || *planned <= 0) return plan + " per rank at the peak of a step";
  const double bytes = *peak * kBytesPerMb;
  return fmt::format("{} per rank at the peak of a step; measured {} ({:+.1f} %)", plan,
                     human_bytes(static_cast<std::int64_t>(bytes)), 100 * (bytes / *planned - 1));
}

std::string memory_log_lines(const RunMemory& memory) {
  const auto line = [](const std::string& name, const MemoryStatistics& MiB) {
    return fmt::format("  {:<27} {:>12.0f} MiB peak, {:.0f} MiB mean\n", name, MiB.peak, MiB.average);
  };
  std::string text;
  constexpr std::size_t kMaxLines = 16;  // a screenful; `tessera analyze-memory` shows all
  for (const GpuMemoryUse& gpu : memory.gpus) {
    if (memory.gpus.size() <= kMaxLines || &gpu == &memory.gpus.front()) {
      text += line(fmt::format("{} - GPU {}", printable(gpu.file.stem().string()), gpu.index), gpu.used_MiB);
    }
  }
  for (const HostMemoryUse& host : memory.hosts) text += line(printable(host.file.stem().string()), host.used_MB);
  for (const MemoryTrouble& trouble : memory.troubles) text += "  " + printable(trouble.line, 400) + "\n";
  return text.empty() ? "" : "memory logs (used: all processes, sampled)\n" + text;
}

std::string settings_lines(const RunRecord& run) {
  std::string text;
  for (const RecordedSetting& setting : run.settings) {
    if (setting.origin == "default") continue;
    text += fmt::format("  {:<27} {} ({})\n", printable(setting.name), printable(setting.value, 80),
                        printable(setting.origin, 60));
  }
  return text.empty() ? "" : "settings that were given\n" + text;
}

std::vector<const RunRecord*> newest_last(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> sorted;
  for (const RunRecord& run : runs) sorted.push_back(&run);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RunRecord* a, const RunRecord* b) { return a->started < b->started; });
  return sorted;
}

// Which memory it is stands behind it: an allocator's and a process's are not to be compared.
TableCell peak_cell(const RunRecord& run) {
  const auto cell = [](double MB, const char* kind) {
    return TableCell{MB, fmt::format("{} {}", human_bytes(static_cast<std::int64_t>(MB * kBytesPerMb)), kind), ""};
  };
  if (const auto allocated = allocated_peak_MB(run)) return cell(*allocated, "allocated");
  if (const auto resident = resident_peak_MB(run)) return cell(*resident, "process");
  return {};
}

TableCell figure_cell(const std::optional<double>& value, int digits) {
  return value ? number_cell(*value, digits) : TableCell();
}

Json json_or_null(const std::optional<double>& value) {
  return value ? json_of(LogValue(*value)) : Json(nullptr);
}

}  // namespace

std::string run_summary_text(const RunRecord& run, double now) {
  std::string text = summary_line("run", printable(folder_text(run)));
  text += summary_line("status", status_with_reason(run, now));
  text += summary_line("started", time_line(run));
  text += summary_line("job", printable(job_text(run)));
  text += summary_line("experiment", printable(run.text("experiment")));
  text += summary_line("strategy", strategy_line(run));
  text += summary_line("model", named_facts(run, {{"num_parameters", "parameters"}, {"num_layers", "layers"}}));
  text += summary_line("data", named_facts(run, {{"train_rows", "rows"},
                                                 {"label_mode", "label mode"},
                                                 {"batch_size", "batch"},
                                                 {"accumulation", "accumulation"},
                                                 {"global_batch", "global batch"},
                                                 {"updates_per_epoch", "updates per epoch"}}));
  text += summary_line("devices", printable(with_counts(run.devices), 300));
  text += summary_line("hosts", printable(with_counts(run.hosts), 300));
  text += summary_line("commit", printable(run.commit));
  text += summary_line("command", printable(join(run.command, " "), 600));
  text += figure_lines(run);
  text += summary_line("memory plan", plan_line(run));
  text += breakdown_lines(run);
  text += memory_log_lines(memory_of(run));
  text += settings_lines(run);
  text += summary_line("checkpoints", printable(join(run.checkpoints, ", "), 300));
  text += summary_line("traces", printable(join(run.traces, ", "), 300));
  return text;
}

Json run_summary_json(const RunRecord& run, double now) {
  Json json = {{"run", folder_text(run)},        {"status", status_of(run, now)},
               {"exit_reason", run.exit_reason}, {"started", run.started},
               {"updated", run.updated},         {"job", job_text(run)},
               {"strategy", strategy_text(run)}, {"ranks", num_ranks(run)},
               {"nodes", num_nodes(run)},        {"steps", steps_done(run)},
               {"total_steps", run.total_steps}, {"commit", run.commit},
               {"command", run.command},         {"hosts", run.hosts},
               {"devices", run.devices}};
  json["facts"] = json_of(run.facts);
  json["figures"] = Json::object();
  for (const Metric& metric : shown_metrics({&run})) {
    if (const auto value = metric.compute(run)) json["figures"][metric.name] = json_of(LogValue(*value));
  }
  json["planned_memory"] = json_of(run.planned_memory);
  json["summary"] = json_of(run.summary);
  json["settings"] = Json::object();
  for (const RecordedSetting& setting : run.settings) {
    json["settings"][setting.name] = {{"value", setting.value}, {"origin", setting.origin}};
  }
  json["files"] = {{"gpu_memory_logs", run.gpu_logs},
                   {"cpu_memory_logs", run.cpu_logs},
                   {"traces", run.traces},
                   {"checkpoints", run.checkpoints}};
  return json;
}

Table run_list(const std::vector<RunRecord>& runs, double now) {
  Table table;
  table.columns = {{"run", "", true},          {"job", "", true},          {"strategy", "", true},
                   {"ranks", "", false},       {"status", "", true},       {"steps", "", false},
                   {"samples/s", "", false},   {"peak memory", "", false}, {"loss", "", false},
                   {"started (UTC)", "", true}};
  for (const RunRecord* run : newest_last(runs)) {
    const int ranks = num_ranks(*run);
    table.rows.push_back({text_cell(folder_text(*run)), text_cell(job_text(*run)), text_cell(strategy_text(*run)),
                          ranks > 0 ? number_cell(ranks, 0) : TableCell(), text_cell(status_of(*run, now)),
                          text_cell(fmt::format("{}/{}", steps_done(*run), run->total_steps)),
                          figure_cell(samples_per_second(*run), 2), peak_cell(*run), figure_cell(train_loss(*run), 4),
                          text_cell(run->started)});
  }
  return table;
}

Json run_list_json(const std::vector<RunRecord>& runs, double now) {
  Json list = Json::array();
  for (const RunRecord* run : newest_last(runs)) {
    list.push_back({{"run", folder_text(*run)},
                    {"job", job_text(*run)},
                    {"strategy", strategy_text(*run)},
                    {"ranks", num_ranks(*run)},
                    {"status", status_of(*run, now)},
                    {"exit_reason", run->exit_reason},
                    {"steps", steps_done(*run)},
                    {"total_steps", run->total_steps},
                    {"samples_per_second", json_or_null(samples_per_second(*run))},
                    {"allocated_peak_MB", json_or_null(allocated_peak_MB(*run))},
                    {"resident_peak_MB", json_or_null(resident_peak_MB(*run))},
                    {"train_loss", json_or_null(train_loss(*run))},
                    {"started", run->started}});
  }
  return list;
}

}  // namespace tessera
