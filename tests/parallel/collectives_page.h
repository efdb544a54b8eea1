// docs/collectives.md, from recorded steps.
#pragma once

#include <string>

namespace tessera {

std::string collectives_page();

}  // namespace tessera
