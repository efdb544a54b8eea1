// How long the Slurm job that this process is part of may still run.
#pragma once

#include <optional>
#include <string>

#include "core/environment.h"

namespace tessera {

// In seconds; none outside a job, or where it has no limit. Newer Slurms say when it ends in SLURM_JOB_END_TIME; else
// squeue is asked. Throws Error if its answer is not understood.
std::optional<double> job_time_left(const Environment& environment);

// '1-02:03:04', '2:03', 'UNLIMITED', as squeue's %L prints them. Throws Error for anything else.
std::optional<double> slurm_time_left(const std::string& text);

}  // namespace tessera
