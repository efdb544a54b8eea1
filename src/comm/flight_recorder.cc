#include "comm/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

double seconds_since(Clock::time_point time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

Clock::time_point seconds_ago(double seconds) {
  return Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string describe(const FlightEntry& entry) {
  std::string text = entry.sequence > 0 ? fmt::format("#{} {}", entry.sequence, entry.operation) : entry.operation;
  if (!entry.unit.empty()) text += fmt::format(" of '{}'", entry.unit);
  if (!entry.detail.empty()) text += fmt::format(" ({} bytes, {})", entry.bytes, entry.detail);
  return text;
}

// Where a rank stands: its last entry on any group.
std::string standing(const std::vector<FlightEntry>& entries) {
  if (entries.empty()) return "has begun no collective";
  const FlightEntry& last = entries.back();
  const std::string where = last.group == "world" ? "" : fmt::format(" on group {}", last.group);
  if (!last.error.empty()) return fmt::format("failed in {}{}: {}", describe(last), where, last.error);
  if (last.done) return fmt::format("last finished {}{}, {:.1f} s ago", describe(last), where, seconds_since(last.end));
  return fmt::format("is in {}{} since {:.1f} s", describe(last), where, seconds_since(last.start));
}

// Ranks that share a remark are named together: "ranks 0-2: ...".
std::string list_by_remark(const std::vector<std::pair<int, std::string>>& remarks) {
  std::vector<std::pair<std::string, std::vector<int>>> grouped;
  for (const auto& [rank, remark] : remarks) {
    auto found = std::find_if(grouped.begin(), grouped.end(), [&](const auto& g) { return g.first == remark; });
    if (found == grouped.end()) found = grouped.insert(grouped.end(), {remark, {}});
    found->second.push_back(rank);
  }
  std::string text;
  for (const auto& [remark, ranks] : grouped) {
    text += fmt::format("\n  {} {}: {}", ranks.size() == 1 ? "rank" : "ranks", format_ranges(ranks), remark);
  }
  return text;
}

const FlightEntry* find_collective(const std::vector<FlightEntry>& entries, const FlightEntry& wanted) {
  for (const FlightEntry& entry : entries) {
    if (entry.group == wanted.group && entry.sequence == wanted.sequence && wanted.sequence > 0) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string FlightEntry::signature() const {
  return fmt::format("{} of '{}' ({} bytes, {})", operation, unit, bytes, detail);
}

std::uint64_t FlightRecorder::begin(FlightEntry entry) {
  std::lock_guard lock(mutex_);
  entry.id = ++last_id_;
  const bool is_point_to_point = entry.operation == "send" || entry.operation == "recv";
  entry.sequence = is_point_to_point ? 0 : ++sequence_of_group_[entry.group];
  entry.start = Clock::now();
  // The oldest finished entry makes room; one that is still under way is what the watchdog needs.
  if (entries_.size() >= capacity_) {
    auto finished = std::find_if(entries_.begin(), entries_.end(), [](const FlightEntry& e) { return e.done; });
    if (finished != entries_.end()) entries_.erase(finished);
  }
  entries_.push_back(std::move(entry));
  return last_id_;
}

void FlightRecorder::finish(std::uint64_t id, const std::string& error) {
  std::lock_guard lock(mutex_);
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->id != id) continue;
    entry->end = Clock::now();
    entry->done = true;
    entry->error = error;
    return;
  }
}

void FlightRecorder::finish_when(std::uint64_t id, std::function<bool()> is_done) {
  std::lock_guard lock(mutex_);
  polled_.emplace_back(id, std::move(is_done));
}

void FlightRecorder::poll() {
  decltype(polled_) waiting;
  {
    std::lock_guard lock(mutex_);
    waiting.swap(polled_);
  }
  for (auto each = waiting.begin(); each != waiting.end();) {
    std::string error;
    bool done = true;
    try {
      done = each->second();
    } catch (const std::exception& e) {
      error = e.what();
    }
    if (done) finish(each->first, error);
    each = done ? waiting.erase(each) : std::next(each);
  }
  std::lock_guard lock(mutex_);
  polled_.splice(polled_.begin(), waiting);
}

std::optional<FlightEntry> FlightRecorder::overdue(Clock::time_point limit) const {
  std::lock_guard lock(mutex_);
  for (const FlightEntry& entry : entries_) {
    if (!entry.done && entry.start < limit) return entry;
  }
  return std::nullopt;
}

std::optional<FlightEntry> FlightRecorder::first_failed() const {
  std::lock_guard lock(mutex_);
  for (const FlightEntry& entry : entries_) {
    if (!entry.error.empty()) return entry;
  }
  return std::nullopt;
}

std::vector<FlightEntry> FlightRecorder::entries() const {
  std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

void FlightRecorder::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

std::string FlightRecorder::dump() const {
  Json list = Json::array();
  for (const FlightEntry& e : entries()) {
    list.push_back({{"id", e.id},
                    {"sequence", e.sequence},
                    {"group", e.group},
                    {"ranks", e.ranks},
                    {"operation", e.operation},
                    {"unit", e.unit},
                    {"detail", e.detail},
                    {"bytes", e.bytes},
                    {"start_age", seconds_since(e.start)},
                    {"end_age", e.done ? seconds_since(e.end) : 0.0},
                    {"done", e.done},
                    {"error", e.error}});
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<FlightEntry> FlightRecorder::parse_dump(const std::string& dump) {
  std::vector<FlightEntry> entries;
  for (const Json& e : parse_json(dump, "flight recorder")) {
    FlightEntry entry;
    entry.id = e.at("id");
    entry.sequence = e.at("sequence");
    entry.group = e.at("group");
    entry.ranks = e.at("ranks").get<std::vector<int>>();
    entry.operation = e.at("operation");
    entry.unit = e.at("unit");
    entry.detail = e.at("detail");
    entry.bytes = e.at("bytes");
    entry.start = seconds_ago(e.at("start_age"));
    entry.done = e.at("done");
    if (entry.done) entry.end = seconds_ago(e.at("end_age"));
    entry.error = e.at("error");
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string diagnose(const FlightEntry& stuck, const std::map<int, std::vector<FlightEntry>>& entries_of_rank) {
  std::string text = fmt::format("{} on group {} ({} ranks)", describe(stuck), stuck.group, stuck.ranks.size());
  std::vector<std::pair<int, std::string>> missing, different, waiting;
  for (int rank : stuck.ranks) {
    const auto found = entries_of_rank.find(rank);
    if (found == entries_of_rank.end()) {
      missing.emplace_back(rank, "did not answer: it hangs outside Tessera's threads, is stopped, or is gone");
      continue;
    }
    const FlightEntry* entry = find_collective(found->second, stuck);
    if (stuck.sequence == 0) {
      waiting.emplace_back(rank, standing(found->second));
    } else if (entry == nullptr) {
      missing.emplace_back(rank, standing(found->second));
    } else if (entry->signature() != stuck.signature()) {
      different.emplace_back(rank, describe(*entry));
    } else {
      waiting.emplace_back(rank, entry->error.empty() ? (entry->done ? "finished it" : "entered it and waits")
                                                      : "entered it; " + entry->error);
    }
  }
  if (!missing.empty()) text += "\n never entered it:" + list_by_remark(missing);
  if (!different.empty()) text += "\n entered another one instead:" + list_by_remark(different);
  if (!waiting.empty()) text += "\n entered it, or stand elsewhere:" + list_by_remark(waiting);
  return text;
}

}  // namespace tessera
