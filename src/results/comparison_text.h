// A comparison for people and for programs. (no torch)
#pragma once

#include <string>

#include "core/json.h"
#include "results/comparison.h"
#include "results/tables/table.h"

namespace tessera {

// One row per setting, one column per group.
Table settings_table(const Comparison& comparison);
// One row per figure: its direction, and per group mean, spread and change.
Table figures_table(const Comparison& comparison);

std::string comparison_text(const Comparison& comparison, const GateLimits& limits);
Json comparison_json(const Comparison& comparison, const GateLimits& limits);

}  // namespace tessera
