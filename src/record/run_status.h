// What became of a run: its record says how it ended, or nothing more if it was killed. (no torch)
#pragma once

#include <optional>
#include <string>

#include "record/run_record.h"

namespace tessera {

// A run that still says 'running' but has not updated its record for longer than this counts as killed: its process
// was ended without a chance to say so, or its node is gone.
inline constexpr double kSilentSeconds = 600;

// "running", "finished", "stopped_early", "interrupted", "failed" or "killed". `now`: seconds since 1970.
std::string status_of(const RunRecord& run, double now);
// The same with the reason: "failed: out of memory: step 1 ...", "killed: no word since 2026-11-15T09:00:00Z".
std::string status_with_reason(const RunRecord& run, double now);
// It came to its end, so that its figures are those of a whole run.
bool has_finished(const RunRecord& run);

// "2026-11-15T09:00:00Z" as seconds since 1970; none: not such a time.
std::optional<double> seconds_of_utc(const std::string& text);
// From `started` to `updated`.
std::optional<double> recorded_seconds(const RunRecord& run);

}  // namespace tessera
