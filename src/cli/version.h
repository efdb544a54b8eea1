// `tessera --version`: this program and what it runs on.
#pragma once

#include <string>

namespace tessera {

// The first line names the program and its commit, and is all that scripts compare; then one line each for torch, CUDA
// and MPI. Loads nothing that is not loaded yet except the MPI library.
std::string version_text();

}  // namespace tessera
