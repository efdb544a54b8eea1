// A comparison for people and for programs.
#include <fmt/format.h>

#include <cmath>

#include "core/log_record.h"
#include "core/text.h"
#include "results/comparison.h"
#include "results/tables/table.h"

namespace tessera {
namespace {

// Empty: not known.
const char* direction_text(Better better) {
  return better == Better::kUnknown ? "" : better == Better::kHigher ? "higher" : "lower";
}

std::string verdict_on(const ComparedMetric& compared, std::size_t group) {
  const double change = compared.change_percent(group).value_or(0);
  if (std::abs(change) < 0.05) return "";  // shown as 0.0
  if (compared.is_within_spread(group)) return " within spread";
  if (compared.metric.better == Better::kUnknown) return "";
  return (change > 0) == (compared.metric.better == Better::kHigher) ? " better" : " worse";
}

TableCell compared_cell(const ComparedMetric& compared, std::size_t group) {
  const std::optional<Spread>& value = compared.values[group];
  if (!value) return {};
  const int digits = compared.metric.digits;
  std::string text = fmt::format("{:.{}f}", value->mean, digits);
  if (value->num_runs > 1) text += fmt::format(" \u00b1 {:.{}f}", value->deviation, digits);
  if (const std::optional<double> change = compared.change_percent(group)) {
    text += fmt::format("  {:+.1f} %{}", *change, verdict_on(compared, group));
  }
  return {value->mean, text, ""};
}

void add_group_columns(Table& table, const Comparison& comparison) {
  for (const RunGroup& group : comparison.groups) table.columns.push_back({printable(group.name), "", true});
}

// One row per setting, one column per group.
Table settings_table(const Comparison& comparison) {
  Table table;
  table.columns = {{"setting", "", true}};
  add_group_columns(table, comparison);
  for (const DifferingSetting& setting : comparison.settings) {
    std::vector<TableCell> row = {text_cell(setting.name)};
    for (const std::string& value : setting.values) row.push_back(text_cell(value));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// One row per figure: its direction, and per group mean, spread and change.
Table figures_table(const Comparison& comparison) {
  Table table;
  table.columns = {{"figure", "", true}, {"better", "", true}};
  add_group_columns(table, comparison);
  for (const ComparedMetric& compared : comparison.metrics) {
    std::vector<TableCell> row = {text_cell(column_heading({compared.metric.label, compared.metric.unit, true})),
                                  text_cell(direction_text(compared.metric.better))};
    for (std::size_t group = 0; group < compared.values.size(); ++group) row.push_back(compared_cell(compared, group));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json spread_json(const std::optional<Spread>& value) {
  if (!value) return nullptr;
  return {{"mean", json_of(LogValue(value->mean))},
          {"spread", json_of(LogValue(value->deviation))},
          {"runs", value->num_runs}};
}

}  // namespace

std::string comparison_text(const Comparison& comparison, const GateLimits& limits) {
  std::string text;
  for (const RunGroup& group : comparison.groups) {
    text += fmt::format("{} {}: {} run{}\n", &group == &comparison.groups.front() ? "baseline" : "        ",
                        printable(group.name), group.runs.size(),
                        group.runs.size() == 1 ? "" : "s, repeats of one another");
  }
  text += comparison.settings.empty() ? "\nno setting differs\n"
                                      : "\nsettings that differ\n" + indented(table_text(settings_table(comparison)));
  text += "\nfigures: mean \u00b1 standard deviation over repeats, and the change against the baseline\n";
  text += indented(table_text(figures_table(comparison)));
  if (!comparison.notes.empty()) text += "\n";
  for (const std::string& note : comparison.notes) text += printable(note, 600) + "\n";
  if (!limits.any()) return text;
  if (comparison.gate_failures.empty()) return text + "\ngate passed\n";
  text += "\ngate failed\n";
  for (const std::string& failure : comparison.gate_failures) text += "  " + printable(failure, 600) + "\n";
  return text;
}

Json comparison_json(const Comparison& comparison, const GateLimits& limits) {
  Json json = {{"baseline", comparison.groups.front().name}, {"groups", Json::array()}};
  for (const RunGroup& group : comparison.groups) {
    Json runs = Json::array();
    for (const RunRecord* run : group.runs) runs.push_back(folder_text(*run));
    json["groups"].push_back({{"name", group.name}, {"runs", std::move(runs)}});
  }
  json["settings"] = Json::array();
  for (const DifferingSetting& setting : comparison.settings) {
    json["settings"].push_back({{"name", setting.name}, {"values", setting.values}});
  }
  json["figures"] = Json::array();
  for (const ComparedMetric& compared : comparison.metrics) {
    Json values = Json::array(), changes = Json::array();
    for (std::size_t group = 0; group < compared.values.size(); ++group) {
      values.push_back(spread_json(compared.values[group]));
      const std::optional<double> change = compared.change_percent(group);
      changes.push_back(change ? json_of(LogValue(*change)) : Json(nullptr));
    }
    const bool has_direction = compared.metric.better != Better::kUnknown;
    json["figures"].push_back({{"name", compared.metric.name},
                               {"label", compared.metric.label},
                               {"unit", compared.metric.unit},
                               {"better", has_direction ? Json(direction_text(compared.metric.better)) : Json()},
                               {"values", std::move(values)},
                               {"change_percent", std::move(changes)}});
  }
  json["notes"] = comparison.notes;
  json["gate"] = {
      {"checked", limits.any()}, {"passed", comparison.gate_failures.empty()}, {"failures", comparison.gate_failures}};
  return json;
}

}  // namespace tessera
