// `tessera report`: one page about runs, as a file that opens in any browser.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args` are the words after `report`.
int run_report(const std::vector<std::string>& args);

}  // namespace tessera
