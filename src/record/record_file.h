// A run's record in its folder: run.json, and beside it what grows with the run. (no torch)
//
// run.json
// {"format": 3, "status": "running", "exit_reason": "", "started": "2026-11-15T09:00:00Z", "updated": ...,
//  "settings": {"learning_rate": {"value": 5e-05, "origin": "command line"}, ...}, "facts": {"strategy": "zero2",
//  ...}, "versions": {...}, "hosts": [...], "devices": [...], "commit": "...", "command": [...], "total_steps": 93,
//  "steps_done": 93, "last_values": {"step": 93, "loss": 2.5, ...}, "summary": {...}, "planned_memory": {...},
//  "ranks": [...], "collectives": [...], "memory_logs": {"gpu": [...], "cpu": [...]}, "traces": [...]}
// metrics.jsonl: a line per log, {"step": 10, "time": 1794733206.5, "loss": 2.8125, ...}
// usage.jsonl: a line per rank, {"rank": 0, "period_seconds": 5, "allocated_MB": [100.5, null, ...], ...}
//
// Settings that leave a choice to the run (strategy auto) have what was decided. A status 'running' with an old
// 'updated' means that the run was killed. steps_done is written when the run ends, however it does. Formats 1 and 2
// have metrics and usage inside run.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace tessera {

// The format that this program writes. A record in a newer format is refused; the message names both.
inline constexpr int kRunRecordFormat = 3;
inline constexpr const char* kRecordFile = "run.json";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kUsageFile = "usage.jsonl";

// kBrief: run.json alone, which is fast, for lists, comparisons of last values and choosing the runs to read whole.
enum class RunDetail { kBrief, kWhole };

// A run.json, or a folder with one. Lines that were cut off in the files beside it are left out: the run was killed, or
// the disk was full. Throws UsageError naming the file and what is wrong with it.
RunRecord read_run_record(const std::filesystem::path& path, RunDetail detail = RunDetail::kWhole);

std::string run_record_text(const RunRecord& run);  // of run.json
std::string metrics_line(const LogRecord& metrics);
std::string usage_text(const std::vector<RankRecord>& ranks);

}  // namespace tessera
