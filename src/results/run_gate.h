// A regression gate: whether a group of runs is slower or needs more memory than the baseline allows. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/comparison.h"

namespace tessera {

// One sentence per failure. A run that failed or was killed fails the gate, and so do a record that cannot be read
// (`problems`), a status that is not known and a figure that is missing: a gate that cannot judge must not pass.
std::vector<std::string> gate_failures(const std::vector<RunGroup>& groups, const std::vector<std::string>& problems,
                                       const GateLimits& limits, double now);

// "5%" as 5. Throws UsageError naming the option.
double parse_percentage(const std::string& option, const std::string& text);

}  // namespace tessera
