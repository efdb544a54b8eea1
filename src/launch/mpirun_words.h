// What mpirun says when a run ends.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// What of its words explains why ranks ended: not that it passes on our signals, nor that a process has ended, which
// our report says better, nor the lines that it draws around that. Empty: nothing.
std::string explanation_in(std::string_view words);

}  // namespace tessera
