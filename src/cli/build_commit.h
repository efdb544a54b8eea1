// Which commit this program was built from.
#pragma once

namespace tessera {

// 40 digits, "-dirty" behind them where files differed from it; empty where the sources had no history.
const char* build_commit();

}  // namespace tessera
