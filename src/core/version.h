// The version of Tessera. CMakeLists.txt reads it from here.
#pragma once

namespace tessera {
inline constexpr const char* kVersion = "0.2.0";
}
