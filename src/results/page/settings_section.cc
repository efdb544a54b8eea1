// Settings that differ between the runs, and what they ran on.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

constexpr std::size_t kMostSideBySide = 8;  // more runs than that: values with the number of their runs
constexpr std::size_t kMostValues = 6;
constexpr const char *kUnset = "-", *kEmpty = "(none)";

struct SettingRow {
  std::string name;
  std::vector<std::string> values;  // by run
};

std::vector<SettingRow> setting_rows(const PageContent& page) {
  std::vector<SettingRow> all;
  std::map<std::string, std::size_t> place;
  for (std::size_t run = 0; run < page.runs.size(); ++run) {
    for (const RecordedSetting& setting : page.runs[run].record->settings) {
      const auto [found, is_new] = place.try_emplace(setting.name, all.size());
      if (is_new) all.push_back({setting.name, std::vector<std::string>(page.runs.size(), kUnset)});
      all[found->second].values[run] = setting.value.empty() ? kEmpty : setting.value;
    }
  }
  std::erase_if(all, [](const SettingRow& setting) {
    return std::all_of(setting.values.begin(), setting.values.end(),
                       [&](const std::string& value) { return value == setting.values.front(); });
  });
  return all;
}

// "5e-05 (60 runs), 0.0001 (40 runs)", the most frequent first.
std::string counted_values(const std::vector<std::string>& values) {
  std::map<std::string, std::int64_t> counts;
  for (const std::string& value : values) ++counts[value];
  if (counts.size() == values.size()) return "different in every run";
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostValues); ++i) {
    words.push_back(fmt::format("{} ({})", printable(sorted[i].first, 80), counted(sorted[i].second, "run")));
  }
  if (sorted.size() > kMostValues) words.push_back(fmt::format("{} other values", sorted.size() - kMostValues));
  return join(words, ", ");
}

// Hosts, devices, versions and commit.
std::vector<std::string> machine_of(const RunRecord& run) {
  std::vector<std::string> hosts = run.hosts, versions;
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  for (const auto& [name, value] : run.versions.entries()) {
    const std::string* text = std::get_if<std::string>(&value);
    if (text != nullptr) versions.push_back(name + " " + *text);
  }
  return {join(hosts, ", "), with_counts(run.devices), join(versions, ", "), run.commit};
}

}  // namespace

std::string settings_section(const PageContent& page) {
  if (page.runs.size() < 2) return "";
  const std::vector<SettingRow> settings = setting_rows(page);
  if (settings.empty()) return section("settings", "Settings that differ", "<p>None: all runs have the same.</p>");
  const bool is_side_by_side = page.runs.size() <= kMostSideBySide;
  PageTable table;
  table.title = is_side_by_side ? "By run" : "Values and the number of runs that have them";
  table.columns = {"Setting"};
  if (is_side_by_side) {
    for (const RunFigures& run : page.runs) table.columns.push_back(run.name);
  } else {
    table.columns.push_back("Values");
  }
  for (const SettingRow& setting : settings) {
    std::vector<std::string> row = {setting.name};
    if (is_side_by_side) {
      for (const std::string& value : setting.values) row.push_back(printable(value, 120));
    } else {
      row.push_back(counted_values(setting.values));
    }
    table.rows.push_back(std::move(row));
  }
  return section("settings", "Settings that differ", page_table(table));
}

std::string hardware_section(const PageContent& page) {
  std::vector<std::pair<std::vector<std::string>, std::vector<const RunFigures*>>> machines;
  for (const RunFigures& run : page.runs) value_beside(machines, machine_of(*run.record)).push_back(&run);
  PageTable table;
  table.title = "What the runs ran on";
  table.columns = {"Runs", "Hosts", "Devices", "Versions", "Commit"};
  for (const auto& [machine, runs] : machines) {
    const std::string& first = runs.front()->name;
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(runs.size() == 1                  ? first
                  : runs.size() == page.runs.size() ? fmt::format("all {}", runs.size())
                                                    : fmt::format("{} runs: {}, ...", runs.size(), first));
    for (const std::string& part : machine) row.push_back(printable(part));
  }
  return section("hardware", "Hardware and versions", page_table(table));
}

}  // namespace tessera
