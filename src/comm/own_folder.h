// Where libtessera.so is: what it loads at run time lies beside it.
#pragma once

#include <filesystem>

namespace tessera {

// The folder of libtessera.so, or of the program it is linked into.
std::filesystem::path own_folder();

}  // namespace tessera
