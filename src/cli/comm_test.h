// `tessera comm-test`: how fast the ranks communicate, and whether the data that arrives is correct.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args` are the words after `comm-test`. Returns the exit status, the same on every rank: 0, 44 (no figure), 45
// (wrong data), 46 (below --min-busbw).
int run_comm_test(const std::vector<std::string>& args);

}  // namespace tessera
