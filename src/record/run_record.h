// run.json: everything that tables, comparisons and the page need to know about a run. (no torch)
//
// {"format": 2, "status": "running", "exit_reason": "", "started": "2026-11-15T09:00:00Z", "updated": ...,
//  "settings": {"learning_rate": {"value": 5e-05, "origin": "command line"}, ...}, "facts": {"strategy": "zero2",
//  ...}, "versions": {...}, "hosts": [...], "devices": [...], "commit": "...", "command": [...], "total_steps": 93,
//  "steps_done": 93, "metrics": [{"step": 10, ...}, ...], "summary": {...}, "planned_memory": {...}, "ranks": [...],
//  "collectives": [...], "memory_logs": {"gpu": [...], "cpu": [...]}, "traces": [...]}
//
// Settings that leave a choice to the run (strategy auto) have what was decided. A status 'running' with an old
// 'updated' means that the run was killed. steps_done is written when the run ends, however it does. Format 1 has no
// facts, planned_memory, ranks, collectives, memory_logs and traces: they are then empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log_record.h"

namespace tessera {

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
  std::vector<LogRecord> metrics;          // each with its step and time (seconds since 1970)
  std::vector<RankRecord> ranks;
  std::vector<CollectiveRecord> collectives;
  // Files, relative to run.json's folder if below it.
  std::vector<std::string> gpu_logs, cpu_logs, cgroup_logs, traces;
  double host_logs_start_seconds = 0;  // when CPU and cgroup logs began, from the run's start

  const RecordedSetting* setting(const std::string& name) const;  // null: the run had no such setting
  std::string text(const std::string& fact) const;                // empty: the run has no such fact, or it is a number
  // The last value that was logged under this name; none: never logged.
  std::optional<double> last(const std::string& metric) const;
};

// The format that this program writes. A record in a newer format is refused; the message names both.
inline constexpr int kRunRecordFormat = 2;

// A run.json, or a folder with one. Throws UsageError naming the file and what is wrong with it.
RunRecord read_run_record(const std::filesystem::path& path);
// The text of a run.json; `file` is where it came from.
RunRecord parse_run_record(std::string_view text, const std::filesystem::path& file);

}  // namespace tessera
