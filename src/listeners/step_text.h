// Where a run's time went, in words. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace tessera {

// "1.10 s = data wait 0.1 %, forward 30.2 %, ...", the mean over all ranks; parts of nothing are left out. Empty where
// no step was timed.
std::string step_text(const std::vector<RankRecord>& ranks);

// "rank 3 is 12 % slower than the median (data wait)": ranks wait for each other, so the slow one is the one whose own
// work, everything but communication, takes longest. None if it takes less than a twentieth more than the median.
std::optional<std::string> slow_rank_text(const std::vector<RankRecord>& ranks);

}  // namespace tessera
