// The facts of a machine, for people and for programs: the same facts in both.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "monitor/host_info_advice.h"

namespace tessera {

std::string machine_text(const MachineFacts& facts, const std::vector<Problem>& problems);
// Unknown facts are null. Strings may hold any bytes: print with json_text.
Json machine_json(const MachineFacts& facts, const std::vector<Problem>& problems);

}  // namespace tessera
