// `tessera train JOB`: a training run from the users' own settings.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// What follows `tessera train`. Returns the exit status.
int run_train(const std::vector<std::string>& args);

}  // namespace tessera
