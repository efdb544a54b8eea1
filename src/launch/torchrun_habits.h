// torchrun's other flags: existing scripts keep working, or learn what to write instead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/settings.h"

namespace tessera {

void declare_habits(Schema& schema, LaunchSettings& settings);

// Throws UsageError that says how to do it here.
void refuse_what_is_done_otherwise(const LaunchSettings& settings);
// Lines about flags that were given and change nothing.
std::vector<std::string> remarks_on(const LaunchSettings& settings);

// The remark if --nproc_per_node is not given: torchrun would start one rank. Empty if so do we.
std::string remark_on_count(const LaunchPlan& plan, const HostFacts& host);

// For torchrun's `--tee 3`, whose value was read as the program: the same arguments with --tee=true (false for 0)
// instead, to be read again; otherwise nothing. `settings` is what was read from `arguments`.
std::optional<std::vector<std::string>> with_plain_tee(const std::vector<std::string>& arguments,
                                                       const LaunchSettings& settings);

}  // namespace tessera
