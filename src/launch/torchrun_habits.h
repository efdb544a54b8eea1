// What torchrun knows besides: so that scripts go on working, or are told what to write instead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/settings.h"

namespace tessera {

void declare_habits(Schema& schema, LaunchSettings& settings);

// Throws UsageError that says how it is done here.
void refuse_what_is_done_otherwise(const LaunchSettings& settings);
// Lines about flags that were given and change nothing.
std::vector<std::string> remarks_on(const LaunchSettings& settings);

// torchrun's `--tee 3`, whose value was read as the program: the same arguments with --tee=true (false for 0) in its
// place, to be read again; else nothing. `settings` are what was read from `arguments`.
std::optional<std::vector<std::string>> with_plain_tee(const std::vector<std::string>& arguments,
                                                       const LaunchSettings& settings);

}  // namespace tessera
