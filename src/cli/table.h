// `tessera table NAME --runs DIR`: a table of the experiments, filled from recorded runs.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_table(const std::vector<std::string>& args);

// To the file; none: to standard output.
void write_output(const std::string& text, const std::string& file);

}  // namespace tessera
