#include "comm/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "comm/failure.h"
#include "core/text.h"

namespace tessera {
namespace {

double seconds_since(Clock::time_point time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

std::string describe(const FlightEntry& entry) {
  std::string text = entry.sequence > 0 ? fmt::format("#{} {}", entry.sequence, entry.operation) : entry.operation;
  if (!entry.unit.empty()) text += fmt::format(" of '{}'", entry.unit);
  if (!entry.detail.empty()) text += fmt::format(" ({} bytes, {})", entry.bytes, entry.detail);
  return text;
}

// Where a rank is: its last entry on any group.
std::string standing(const std::vector<FlightEntry>& entries) {
  if (entries.empty()) return "has not started a collective";
  const FlightEntry& last = entries.back();
  const std::string where = last.group == "world" ? "" : fmt::format(" on group {}", last.group);
  if (!last.error.empty()) return fmt::format("failed in {}{}: {}", describe(last), where, last.error);
  if (last.done) return fmt::format("last finished {}{}, {:.1f} s ago", describe(last), where, seconds_since(last.end));
  return fmt::format("has been in {}{} for {:.1f} s", describe(last), where, seconds_since(last.start));
}

// Ranks that share a remark are named together: "ranks 0-2: ...".
std::string list_by_remark(const std::vector<std::pair<int, std::string>>& remarks) {
  std::vector<std::pair<std::string, std::vector<int>>> grouped;
  for (const auto& [rank, remark] : remarks) {
    auto found = std::ranges::find_if(grouped, [&](const auto& g) { return g.first == remark; });
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

// What a rank entered at that point of the group; null: nothing, or it sent nothing.
const FlightEntry* entered_by(int rank, const FlightEntry& stuck, const Flights& flights) {
  const auto found = flights.find(rank);
  return found == flights.end() ? nullptr : find_collective(found->second, stuck);
}

// A rank that is further on has finished it, though its ring no longer holds it.
bool has_passed(const std::vector<FlightEntry>& entries, const FlightEntry& wanted) {
  return std::ranges::any_of(entries, [&](const FlightEntry& entry) {
    return entry.group == wanted.group && entry.sequence > wanted.sequence;
  });
}

}  // namespace

std::string FlightEntry::signature() const {
  return fmt::format("{} of '{}' ({} bytes, {})", operation, unit, operation == "all_to_all" ? 0 : bytes, detail);
}

std::string FlightEntry::name() const {
  return fmt::format("{} of '{}', {} bytes, group {}", operation, unit, bytes, group);
}

void to_json(Json& json, const Age<const Clock::time_point>& age) {
  json = age.time == Clock::time_point() ? 0.0 : seconds_since(age.time);
}
void from_json(const Json& json, Age<Clock::time_point>& age) {
  age.time = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(json));
}

std::uint64_t FlightRecorder::begin(FlightEntry entry) {
  std::lock_guard lock(mutex_);
  entry.id = ++last_id_;
  const bool is_point_to_point = entry.operation == "send" || entry.operation == "recv";
  entry.sequence = is_point_to_point ? 0 : ++sequence_of_group_[entry.group];
  entry.start = Clock::now();
  // The oldest finished entry makes room; the watchdog needs those that are still in progress.
  while (entries_.size() >= capacity_) {
    const auto finished = std::ranges::find(entries_, true, &FlightEntry::done);
    if (finished == entries_.end()) break;
    entries_.erase(finished);
  }
  FlightTotals& totals = totals_[{entry.operation, entry.unit}];
  ++totals.calls;
  totals.bytes += entry.bytes;
  entries_.push_back(std::move(entry));
  return last_id_;
}

std::deque<FlightEntry>::iterator FlightRecorder::find(std::uint64_t id) {
  const auto found = std::ranges::lower_bound(entries_, id, {}, &FlightEntry::id);
  return found != entries_.end() && found->id == id ? found : entries_.end();
}

void FlightRecorder::finish(std::uint64_t id, const std::string& error) {
  FlightEntry ended;
  {
    std::lock_guard lock(mutex_);
    const auto entry = find(id);
    if (entry == entries_.end()) return;
    entry->end = Clock::now();
    entry->done = true;
    entry->error = error;
    if (!entry->is_polled) {
      totals_[{entry->operation, entry->unit}].seconds +=
          std::chrono::duration<double>(entry->end - entry->start).count();
    }
    ended = *entry;
  }
  std::lock_guard lock(observer_mutex_);
  if (observer_) observer_(ended);
}

void FlightRecorder::cancel(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto entry = find(id);
  if (entry == entries_.end()) return;
  if (entry->sequence > 0) --sequence_of_group_[entry->group];
  FlightTotals& totals = totals_[{entry->operation, entry->unit}];
  --totals.calls;
  totals.bytes -= entry->bytes;
  entries_.erase(entry);
}

void FlightRecorder::finish_when(std::uint64_t id, std::function<bool()> is_done) {
  std::lock_guard lock(mutex_);
  if (const auto entry = find(id); entry != entries_.end()) entry->is_polled = true;
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
      error = message_of(e);
    }
    if (done) finish(each->first, error);
    each = done ? waiting.erase(each) : std::next(each);
  }
  std::lock_guard lock(mutex_);
  polled_.splice(polled_.begin(), waiting);
}

std::optional<FlightEntry> FlightRecorder::overdue(std::chrono::milliseconds limit, Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  for (const FlightEntry& entry : entries_) {
    const auto allowed = entry.limit.count() > 0 ? entry.limit : limit;
    if (!entry.done && now - entry.start > allowed) return entry;
  }
  return std::nullopt;
}

void FlightRecorder::forgive(Clock::duration pause) {
  std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  for (FlightEntry& entry : entries_) {
    if (!entry.done) entry.start = std::min(entry.start + pause, now);
  }
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

std::vector<FlightTotals> FlightRecorder::totals() const {
  std::lock_guard lock(mutex_);
  std::vector<FlightTotals> all;
  for (const auto& [key, totals] : totals_) {
    if (totals.calls > 0) all.push_back({key.first, key.second, totals.calls, totals.bytes, totals.seconds});
  }
  return all;
}

void FlightRecorder::observe(std::function<void(const FlightEntry&)> observer) {
  std::lock_guard lock(observer_mutex_);
  observer_ = std::move(observer);
}

bool FlightRecorder::is_idle() const {
  std::lock_guard lock(mutex_);
  return std::ranges::all_of(entries_, &FlightEntry::done);
}

std::string FlightRecorder::dump() const {
  return json_text(entries());
}

std::vector<FlightEntry> FlightRecorder::parse_dump(const std::string& dump) {
  return parse_json(dump, "flight recorder");
}

std::vector<int> absent_ranks(const FlightEntry& stuck, const Flights& flights) {
  std::vector<int> absent;
  for (int rank : stuck.ranks) {
    const auto found = flights.find(rank);
    const bool is_absent =
        found == flights.end() ||
        (stuck.sequence > 0 && find_collective(found->second, stuck) == nullptr && !has_passed(found->second, stuck));
    if (is_absent) absent.push_back(rank);
  }
  return absent;
}

FlightEntry first_held_up(const FlightEntry& stuck, const Flights& flights) {
  FlightEntry first = stuck;
  std::set<std::pair<std::string, std::uint64_t>> seen;
  while (first.sequence > 0 && seen.insert({first.group, first.sequence}).second) {
    const FlightEntry* cause = nullptr;
    for (int rank : absent_ranks(first, flights)) {
      const auto found = flights.find(rank);
      if (found == flights.end()) continue;
      for (const FlightEntry& entry : found->second) {
        if (entry.done || entry.sequence == 0) continue;
        if (cause == nullptr || (entry.group == cause->group && entry.sequence < cause->sequence)) cause = &entry;
      }
    }
    if (cause == nullptr) return first;
    // An operation that all have entered alike explains nothing: it is slow at most.
    if (absent_ranks(*cause, flights).empty() && odd_ranks(*cause, flights).empty()) return first;
    first = *cause;
  }
  return first;
}

std::optional<FlightEntry> entered_by_most(const FlightEntry& stuck, const Flights& flights) {
  std::map<std::string, std::size_t> num_ranks;  // by what they entered
  for (int rank : stuck.ranks) {
    const FlightEntry* entry = entered_by(rank, stuck, flights);
    if (entry != nullptr && 2 * ++num_ranks[entry->signature()] > stuck.ranks.size()) return *entry;
  }
  return std::nullopt;
}

std::vector<int> odd_ranks(const FlightEntry& stuck, const Flights& flights) {
  std::vector<int> odd;
  for (int rank : stuck.ranks) {
    const FlightEntry* entry = entered_by(rank, stuck, flights);
    if (entry != nullptr && entry->signature() != stuck.signature()) odd.push_back(rank);
  }
  return odd;
}

std::string diagnose(const FlightEntry& stuck, const Flights& flights) {
  std::string text = fmt::format("{} on group {} ({} ranks)", describe(stuck), stuck.group, stuck.ranks.size());
  std::vector<std::pair<int, std::string>> missing, different, waiting, elsewhere;
  for (int rank : stuck.ranks) {
    const auto found = flights.find(rank);
    if (found == flights.end()) {
      missing.emplace_back(rank, "did not answer: it hangs outside Tessera's threads, is stopped, or is gone");
      continue;
    }
    const FlightEntry* entry = find_collective(found->second, stuck);
    if (stuck.sequence == 0) {
      elsewhere.emplace_back(rank, standing(found->second));
    } else if (entry == nullptr && has_passed(found->second, stuck)) {
      elsewhere.emplace_back(rank, fmt::format("finished it; {}", standing(found->second)));
    } else if (entry == nullptr) {
      missing.emplace_back(rank, standing(found->second));
    } else if (entry->signature() != stuck.signature()) {
      different.emplace_back(rank, describe(*entry));
    } else {
      waiting.emplace_back(rank, entry->error.empty() ? (entry->done ? "finished it" : "waiting in it") : entry->error);
    }
  }
  if (!missing.empty()) text += "\n never entered it:" + list_by_remark(missing);
  if (!different.empty()) text += "\n entered another one instead:" + list_by_remark(different);
  if (!waiting.empty()) text += "\n entered it:" + list_by_remark(waiting);
  if (!elsewhere.empty()) text += "\n where the ranks are:" + list_by_remark(elsewhere);
  return text;
}

}  // namespace tessera
