// Which commit this program was built from.
#pragma once

namespace tessera {

// 40 digits, followed by "-dirty" if files differ from it; empty if the sources have no history.
const char* build_commit();

}  // namespace tessera
