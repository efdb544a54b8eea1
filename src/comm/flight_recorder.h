// A ring buffer of this rank's last collectives: which were started, with what arguments, and whether they ended.
//
// Written by the threads that start operations and by those that complete them; read by the watchdog and by tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

using Clock = std::chrono::steady_clock;

// A time as the seconds since then, for other hosts: their clocks differ. 0: it has not come.
template <typename Time>
struct Age {
  Time& time;
};
void to_json(Json& json, const Age<const Clock::time_point>& age);
void from_json(const Json& json, Age<Clock::time_point>& age);

struct FlightEntry {
  std::uint64_t id = 0;        // of this rank, from 1
  std::uint64_t sequence = 0;  // of the group, from 1, equal on all its ranks; 0 for send and recv
  std::string group{};         // name: equal on all its ranks
  std::vector<int> ranks{};    // of the group, world ranks
  std::string operation{};     // "all_reduce"
  std::string unit{};          // given by the caller: "block.3"
  std::string detail{};        // "float32 sum", "float32 to rank 2"
  std::int64_t bytes = 0;      // of the larger of input and output
  Clock::time_point start{}, end{};
  bool done = false;
  std::string error{};                 // why it failed, if it did
  bool is_polled = false;              // its end is noticed some time after it
  std::chrono::milliseconds limit{0};  // its own time limit; 0: that of all

  // Equal on all ranks if all called the collective in the same way. (In an all-to-all, ranks may send different
  // amounts.)
  std::string signature() const;
  std::string name() const;  // "all_gather of 'block.3', 40960 bytes, group world"

  static void visit_fields(auto& entry, const auto& visit) {
    visit("id", entry.id);
    visit("sequence", entry.sequence);
    visit("group", entry.group);
    visit("ranks", entry.ranks);
    visit("operation", entry.operation);
    visit("unit", entry.unit);
    visit("detail", entry.detail);
    visit("bytes", entry.bytes);
    visit("start_age", Age{entry.start});
    visit("end_age", Age{entry.end});
    visit("done", entry.done);
    visit("error", entry.error);
  }
};

// All calls of one operation for one unit.
struct FlightTotals {
  std::string operation, unit;
  std::int64_t calls = 0, bytes = 0;
  double seconds = 0;  // from start to end, overlapping ones added; 0 for NCCL's, whose end is only noticed later
};

class FlightRecorder {
 public:
  explicit FlightRecorder(std::size_t capacity = 256) : capacity_(capacity) {}

  // Fills in id, sequence and start; returns the id.
  std::uint64_t begin(FlightEntry entry);
  void finish(std::uint64_t id, const std::string& error = {});
  // The operation never started: its arguments were refused. Only for the latest entry of its group.
  void cancel(std::uint64_t id);
  // For work that cannot call back (NCCL's): each poll(), by the watchdog, calls `is_done` until it returns true.
  void finish_when(std::uint64_t id, std::function<bool()> is_done);
  void poll();

  // The oldest entry that is not done and has taken longer than its limit: its own, else `limit`.
  std::optional<FlightEntry> overdue(std::chrono::milliseconds limit, Clock::time_point now = Clock::now()) const;
  // The process stood still for so long until now: what is in progress counts as begun that much later.
  void forgive(Clock::duration pause);
  std::optional<FlightEntry> first_failed() const;
  std::vector<FlightEntry> entries() const;  // oldest first
  std::vector<FlightTotals> totals() const;  // since the start of the program
  // Called with every operation that ends, on the thread that ends it; once this returns, the former is called no more.
  // Empty: none.
  void observe(std::function<void(const FlightEntry&)> observer);
  bool is_idle() const;  // nothing is in progress

  // The ring as text for the store, and its inverse.
  std::string dump() const;
  static std::vector<FlightEntry> parse_dump(const std::string& dump);

 private:
  std::deque<FlightEntry>::iterator find(std::uint64_t id);  // ids ascend

  mutable std::mutex mutex_;
  std::size_t capacity_;
  std::deque<FlightEntry> entries_;
  std::map<std::string, std::uint64_t> sequence_of_group_;
  std::map<std::pair<std::string, std::string>, FlightTotals> totals_;  // by operation and unit
  std::mutex observer_mutex_;                                           // held while the observer runs
  std::function<void(const FlightEntry&)> observer_;
  std::uint64_t last_id_ = 0;
  std::list<std::pair<std::uint64_t, std::function<bool()>>> polled_;
};

// What every rank recorded; a rank that sent nothing is absent.
using Flights = std::map<int, std::vector<FlightEntry>>;

// The ranks of `stuck` that never entered it, by what every rank recorded; a rank that sent nothing counts as one.
std::vector<int> absent_ranks(const FlightEntry& stuck, const Flights& flights);

// The operation that holds up the others. Ranks leave a collective at different times, so the one whose limit is over
// may wait for a rank that is itself held up, in an earlier one or in one of another group: follows that to its end.
FlightEntry first_held_up(const FlightEntry& stuck, const Flights& flights);

// What more than half of its ranks entered at that point of their group, if so many agree.
std::optional<FlightEntry> entered_by_most(const FlightEntry& stuck, const Flights& flights);

// The ranks that entered another collective in its place.
std::vector<int> odd_ranks(const FlightEntry& stuck, const Flights& flights);

// Explains why `stuck` never ended, from what every rank recorded (an absent rank sent nothing): which ranks never
// entered it, which entered another collective, and where each rank is.
std::string diagnose(const FlightEntry& stuck, const Flights& flights);

}  // namespace tessera
