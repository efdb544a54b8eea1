// `tessera convert`: weights from one format or type to another.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_convert(const std::vector<std::string>& args);

}  // namespace tessera
