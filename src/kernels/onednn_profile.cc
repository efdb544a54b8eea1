// oneDNN for ARM writes /tmp/perf-PID.map, for profilers, whenever it compiles a kernel, and never removes it: a file
// per rank and run. It reads from the environment whether to do so when it compiles the first, so it is switched off
// here, before main, unless the user has set it.
#if defined(__aarch64__) && defined(__linux__)

#include <cstdlib>

namespace tessera {
namespace {

const bool kIsSwitchedOff = [] {
  if (std::getenv("DNNL_JIT_PROFILE") != nullptr) return false;  // its old name, over which the new one wins
  return setenv("ONEDNN_JIT_PROFILE", "0", /*overwrite=*/0) == 0;
}();

}  // namespace
}  // namespace tessera

#endif
