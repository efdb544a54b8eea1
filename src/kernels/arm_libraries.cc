// What libtorch's libraries for ARM read from the environment at their first use, corrected before main, unless the
// user has set it.
#if defined(__aarch64__) && defined(__linux__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <cstdlib>

namespace tessera {
namespace {

// Neoverse V1, N2 and V2: models that have SVE. For models without it NVPL chooses correctly.
bool is_model_with_sve(unsigned long identification) {
  const unsigned long part = (identification >> 4) & 0xFFF;
  return part == 0xD40 || part == 0xD49 || part == 0xD4F;
}

bool hides_sve() {
  const unsigned long capabilities = getauxval(AT_HWCAP);
  if ((capabilities & HWCAP_SVE) != 0 || (capabilities & HWCAP_CPUID) == 0) return false;
  unsigned long identification = 0;
  asm("mrs %0, MIDR_EL1" : "=r"(identification));  // the kernel answers, as HWCAP_CPUID promises
  return is_model_with_sve(identification);
}

// libtorch multiplies matrices with NVPL BLAS, which chooses its code by processor model. A virtual machine may show a
// Neoverse model but hide its SVE registers: the code NVPL then chooses crashes or never ends.
const bool kIsCorrected = [] {
  if (!hides_sve()) return false;
  setenv("NVPL_BLAS_DEBUG_CPU_TYPE", "1", /*overwrite=*/0);
  return true;
}();

// oneDNN writes /tmp/perf-PID.map, for profilers, whenever it compiles a kernel, and never removes it: a file per rank
// and run.
const bool kIsSwitchedOff = [] {
  if (std::getenv("DNNL_JIT_PROFILE") != nullptr) return false;  // its old name, over which the new one wins
  return setenv("ONEDNN_JIT_PROFILE", "0", /*overwrite=*/0) == 0;
}();

}  // namespace
}  // namespace tessera

#endif
