// `tessera report`: one page about runs, as a file that opens in any browser.
#pragma once

#include <string>
#include <vector>

#include "results/page/page.h"

namespace tessera {

struct ReportRequest {
  std::vector<std::string> folders;  // of runs
  std::string output, title;
  std::vector<UnrecordedRun> unrecorded = {};  // to be named besides
};

// Writes the page and prints what is on it.
int write_report(const ReportRequest& request);

}  // namespace tessera
