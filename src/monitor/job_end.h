// When the Slurm job that this process is part of will be ended by its time limit.
#pragma once

#include <optional>
#include <string>

#include "core/environment.h"

namespace tessera {

// In seconds since 1970; none outside a job, or where it has no limit. Newer Slurms say it in SLURM_JOB_END_TIME; else
// squeue is asked. Throws Error if it does not answer.
std::optional<double> job_end_time(const Environment& environment);

// '2026-11-16T20:05:00', as squeue's %e prints it, in local time; none for its words ('N/A', 'Unknown').
std::optional<double> slurm_time(const std::string& text);

}  // namespace tessera
