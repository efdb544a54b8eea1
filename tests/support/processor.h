// What tests need to know about their processor.
#pragma once

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

namespace tessera {

// What oneDNN takes for itself depends on the processor; the plan has what was measured on ARM.
#ifdef __aarch64__
inline constexpr bool kIsArm = true;
#else
inline constexpr bool kIsArm = false;
#endif

// For half types, on a processor with bfloat16 instructions: Neoverse V1, not N1.
inline bool has_planned_onednn() {
#ifdef __aarch64__
  return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
  return false;
#endif
}

}  // namespace tessera
