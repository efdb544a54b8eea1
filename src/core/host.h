// This host.
#pragma once

#include <string>

namespace tessera {

// Its name, as messages and rosters show it.
std::string host_name();

}  // namespace tessera
