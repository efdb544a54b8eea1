// `tessera env`: this machine as Tessera sees it, and advice for each problem found.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args` are the words after `env`. The exit status is 0 whatever the advice: it reports, it does not judge.
int run_env(const std::vector<std::string>& args);

}  // namespace tessera
