// Names and help of SpreadOptions (tessera/spread.h), declared once for all commands. (no torch)
//
// A new option is a member there, a line in spread_options.cc, and the code that reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "tessera/spread.h"

namespace tessera {

// Adds the options to a command's settings, with the struct's defaults. `names`: only these; empty: all.
void declare(Schema& schema, SpreadOptions& options, const std::string& group,
             const std::vector<std::string>& names = {});

// Each option's name and value, for comparing ranks.
std::vector<std::pair<std::string, std::string>> describe(const SpreadOptions& options);

}  // namespace tessera
