// What a run leaves: everything that lists, comparisons, tables and the page know about it. (no torch)
//
// record_file.h reads and writes it. Accessors find what they name in records of every format: format 1 has no facts,
// planned memory, ranks, collectives, memory logs and traces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/log_record.h"

namespace tessera {

struct RunMemory;

struct RecordedSetting {
  std::string name, value, origin;
  LogValue typed{};  // the value as the file has it: 5e-05, true, "zero2"; none: as text
};

// A part of a step: data wait, forward, ... in the order in which pages show them.
struct PartTime {
  std::string name;
  double mean_ms = 0, std_ms = 0;  // per step
};

// Readings at a fixed period, the first one period after `start_seconds`, which counts from the run's start; nan where
// there was none. MB are 2^20 bytes.
struct UsageSeries {
  double period_seconds = 0;
  std::vector<double> allocated_MB, reserved_MB, used_MB;  // of a GPU
  std::vector<double> resident_MB;                         // of a CPU rank's process
  std::vector<double> busy_percent;                        // of the GPU; on a CPU: 100 for one busy core
  double start_seconds = 0;
};

// What one rank measured. `numbers`: allocated_mean_MB, allocated_peak_MB, reserved_..., used_... (GPU) or resident_...
// (CPU), busy_mean_percent, busy_peak_percent, capacity_MB (of its device), steps, step_mean_ms, step_std_ms.
struct RankRecord {
  int rank = 0;
  std::string host, device;
  LogRecord numbers;
  std::vector<PartTime> parts;
  UsageSeries series;
};

// All calls of one operation for one unit, on rank 0.
struct CollectiveRecord {
  std::string operation, unit;
  std::int64_t calls = 0, bytes = 0;
  double seconds = 0;
};

struct RunRecord {
  std::filesystem::path file;
  std::string status;  // running, finished, stopped_early, interrupted, failed
  std::string exit_reason, started, updated, commit;
  std::vector<RecordedSetting> settings;
  // What was decided, typed: job, experiment, job_id, device (cuda, cpu), nodes, ranks, ranks_per_node, strategy,
  // offload_optimizer, offload_param, units_on_device, pin_memory, merge_accumulation, precision (fp32, fp16, bf16),
  // label_mode, num_parameters, num_layers, train_rows, eval_rows, batch_size, accumulation, global_batch,
  // updates_per_epoch, first_step (of a resumed run: done before it), gate_GBps. Those that do not apply are absent.
  LogRecord facts;
  LogRecord versions, summary;
  // Bytes per rank at the peak of a step: parameters, gradients, optimizer, in_flight, activations, total, host_total.
  LogRecord planned_memory;
  std::vector<std::string> hosts, devices, command, checkpoints;
  std::int64_t total_steps = 0;
  std::optional<std::int64_t> steps_done;  // at the end; none: it has not ended, or the record is older than this
  LogRecord last_values;                   // the last number under each name that was logged, step and time included
  std::vector<LogRecord> metrics;          // each with its step and time (seconds since 1970); empty: read in brief
  std::vector<RankRecord> ranks;           // without their series: read in brief
  std::vector<CollectiveRecord> collectives;
  // Files, relative to run.json's folder if below it.
  std::vector<std::string> gpu_logs, cpu_logs, cgroup_logs, traces;
  double host_logs_start_seconds = 0;               // when CPU and cgroup logs began, from the run's start
  mutable std::shared_ptr<const RunMemory> memory;  // of memory_of() (run_memory.h): read when it is asked for

  const RecordedSetting* setting(const std::string& name) const;  // null: the run had no such setting
  std::string text(const std::string& fact) const;                // empty: the run has no such fact, or it is a number
  // The last value that was logged under this name; none: never logged.
  std::optional<double> last(const std::string& metric) const;
};

// What became of a run. A run that still says 'running' but has not updated its record for longer than this counts as
// killed: its process was ended without a chance to say so, or its node is gone.
inline constexpr double kSilentSeconds = 600;

// "running", "finished", "stopped_early", "interrupted", "failed" or "killed". `now`: seconds since 1970.
std::string status_of(const RunRecord& run, double now);
// The same with the reason: "failed: out of memory: step 1 ...", "killed: no word since 2026-11-15T09:00:00Z".
std::string status_with_reason(const RunRecord& run, double now);
// It came to its end, so that its metrics are those of a whole run.
bool has_finished(const RunRecord& run);
std::int64_t steps_done(const RunRecord& run);

// "2026-11-15T09:00:00Z", and back to seconds since 1970; none: not such a time.
std::string utc_time(double wall_seconds);
std::optional<double> seconds_of_utc(const std::string& text);
// From `started` to `updated`.
std::optional<double> recorded_seconds(const RunRecord& run);

std::string job_text(const RunRecord& run);
std::string strategy_text(const RunRecord& run);
std::string precision_text(const RunRecord& run);
int num_ranks(const RunRecord& run);
int num_nodes(const RunRecord& run);
// A fact of any type as text; empty: the run does not have it.
std::string fact_text(const RunRecord& run, const std::string& name);
bool fact_is_true(const RunRecord& run, const std::string& name);

// The run's folder as it was found: what a user types to name the run.
std::string folder_text(const RunRecord& run);
// "1 rank", "2 ranks".
std::string counted(std::int64_t number, const std::string& word);
// The value beside a key, in a list in the order in which keys were first seen.
template <typename Key, typename Value>
Value& value_beside(std::vector<std::pair<Key, Value>>& list, const Key& key) {
  for (auto& [each, value] : list) {
    if (each == key) return value;
  }
  return list.emplace_back(key, Value()).second;
}
// {"node1", "node1", "node2"} as "2 x node1, node2".
std::string with_counts(const std::vector<std::string>& words);

}  // namespace tessera
